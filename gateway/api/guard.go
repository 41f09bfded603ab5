package api

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxRequestID bounds a request id that a client brings: a UUID with some room.
const maxRequestID = 64

// maxAtOnce bounds the requests in work, each of which may hold a body and wait
// for a commit: 16 MiB of bodies at the most.
const maxAtOnce = 256

// maxActor bounds a user name, which stands in every timeline entry it causes.
const maxActor = 64

// caller is what the guard found out about a request.
type caller struct {
	actor   string // user name, else remote address
	known   bool   // credentials were checked, or none are asked for
	request string // X-Request-Id
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// log is the logger with who and which request.
func (d *door) log(r *http.Request) *slog.Logger {
	c := callerOf(r)
	return d.o.Log.With("request_id", c.request, "actor", c.actor, "method", clip(r.Method), "path", clip(r.URL.Path))
}

// guarded admits who may call, and gives every answer its headers.
func (d *door) guarded(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	turns := make(chan struct{}, maxAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote := remoteAddr(r)
		c := caller{actor: remote.String(), request: requestID(r), known: d.o.Users == nil}
		h := w.Header()
		h.Set("X-Request-Id", c.request)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
		if !d.o.AllowRemote && !remote.IsLoopback() {
			d.fail(w, r, http.StatusForbidden, Fault{Code: "remote_refused",
				Message: "this gateway takes HTTP requests only from its own machine",
				Hint:    "start it with remote access allowed, and with users"})
			return
		}
		if !d.hostAllowed(r.Host) {
			d.fail(w, r, http.StatusMisdirectedRequest, Fault{Code: "host_refused",
				Message: "the Host " + clip(strconv.Quote(r.Host)) + " is not a name of this gateway",
				Hint:    "use its address, or add the name to the gateway's allowed hosts"})
			return
		}
		if err := cross.Check(r); err != nil {
			d.fail(w, r, http.StatusForbidden, Fault{Code: "cross_origin",
				Message: "a page of another origin may not send this", Hint: "use a tool that is not a browser page"})
			return
		}
		if d.o.Users != nil {
			if r, c.known = d.authenticate(r, c); !c.known && r.URL.Path != "/healthz" {
				h.Set("WWW-Authenticate", `Basic realm="Apollo-11", charset="UTF-8"`)
				d.fail(w, r, http.StatusUnauthorized, Fault{Code: "unauthorized",
					Message: "a user name and the right password are needed", Hint: "send them with HTTP basic authentication"})
				return
			}
		}
		if r.URL.Path == "/healthz" { // a busy gateway is not a dead one
			next.ServeHTTP(w, r)
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			next.ServeHTTP(w, r)
		default:
			d.fail(w, r, http.StatusServiceUnavailable, Fault{Code: "busy",
				Message: "too many requests are in work", Hint: "try again in a few seconds; nothing was taken"})
		}
	})
}

// authenticate checks the credentials. The name becomes the actor only when the
// password is right.
func (d *door) authenticate(r *http.Request, c caller) (*http.Request, bool) {
	name, password, ok := r.BasicAuth()
	if !ok || name == "" || len(name) > maxActor || !d.o.Users(name, password) {
		return r, false
	}
	c.actor, c.known = name, true
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c)), true
}

// remoteAddr is the address of the other end. The zero address, which is no
// loopback address, stands for one that cannot be read.
func remoteAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// hostAllowed decides whether the client meant this gateway. DNS rebinding needs
// a name, so that an address is always good.
func (d *door) hostAllowed(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err == nil {
		return d.o.AllowRemote || ip.Unmap().IsLoopback()
	}
	return host == "localhost" || slices.ContainsFunc(d.o.Hosts, func(n string) bool { return strings.EqualFold(n, host) })
}

// requestID takes the client's id when it is harmless in a log, else makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	good := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	if id != "" && len(id) <= maxRequestID && strings.IndexFunc(id, func(c rune) bool { return !good(c) }) < 0 {
		return id
	}
	return rand.Text()
}
