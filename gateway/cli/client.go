package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
)

// maxAnswer bounds an answer of the gateway: a page of 500 tasks of full size.
const maxAnswer = 64 << 20

// client calls the HTTP API.
type client struct {
	base     string // without a slash at the end
	actor    string // declared, for gateways without users
	user     string
	password string
	limit    time.Duration
	http     *http.Client
}

func newClient(a *app) (*client, error) {
	text := a.gateway
	if text == "" {
		text = defaultGateway
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, misuse("the gateway address cannot be read: %v", err).hint("use for example --gateway %s", defaultGateway)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, misuse("the gateway address %s is not http:// or https:// with a host", text).
			hint("this is the address of the HTTP API, not of MQTT; for example --gateway %s", defaultGateway)
	}
	c := &client{actor: actor(a.env), user: a.env("APOLLO_USER"), password: a.env("APOLLO_PASSWORD"), limit: a.timeout}
	if u.User != nil {
		c.user = u.User.Username()
		c.password, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	c.base = strings.TrimRight(u.String(), "/")
	c.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// apiError is a refusal by the gateway.
type apiError struct {
	status int
	api.Fault
}

func (e *apiError) Error() string { return e.Message }

// unsure is an error after which it is not known whether the gateway acted.
type unsure struct{ error }

func (e unsure) Unwrap() error { return e.error }

// get reads a document. raw is the answer as it came.
func (c *client) get(ctx context.Context, path string, into any) (raw []byte, err error) {
	return c.call(ctx, http.MethodGet, path, nil, nil, into)
}

// call makes one request. An error is an *apiError or for people; it is unsure
// when the request may have had its effect all the same.
func (c *client) call(ctx context.Context, method, path string, header http.Header, body []byte, into any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	resp, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no interest
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, unsure{trouble("the answer of %s broke off: %v", c.base, err)}
	}
	if len(raw) > maxAnswer {
		return nil, trouble("the answer of %s is larger than %d MiB", c.base, maxAnswer>>20).hint("ask for less with --limit")
	}
	return raw, c.read(resp, raw, into)
}

// send makes a request and returns its answer, of which the caller closes the body.
func (c *client) send(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request to %s: %w", c.base, err)
	}
	if header != nil {
		req.Header = header
	}
	switch {
	case c.user != "":
		req.SetBasicAuth(c.user, c.password)
	case c.actor != "":
		req.Header.Set("X-Actor", c.actor)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return resp, nil
}

// lines reads a document of any length line by line, each with its line end. No
// line and no pause may be longer than there is a reason for. do's own error comes
// back as it is.
func (c *client) lines(ctx context.Context, path string, do func(line []byte) error) error {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(c.limit, cancel)
	defer idle.Stop()
	silent := func(err error) error {
		if live.Err() != nil && ctx.Err() == nil {
			return trouble("%s sent nothing for %v", c.base, c.limit).hint("try again, or wait longer with --request-timeout")
		}
		return err
	}
	resp, err := c.send(live, http.MethodGet, path, nil, nil)
	if err != nil {
		return silent(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no interest
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != api.ContentTypeLines {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return silent(trouble("the answer of %s broke off: %v", c.base, err))
		}
		if err := c.read(resp, raw, &struct{}{}); err != nil {
			return c.explain(err)
		}
		return c.stranger(resp, kind)
	}
	return eachLine(resp.Body, func(line []byte) error {
		idle.Reset(c.limit)
		return do(line)
	}, func(err error) error {
		return silent(trouble("the answer of %s broke off: %v", c.base, err).hint("what came until then is only a part; try again"))
	})
}

// maxLine bounds a line of an export: an audit entry with its longest texts, each
// character escaped.
const maxLine = 32 << 10

// eachLine reads to the end. broken puts an error of reading into words.
func eachLine(r io.Reader, do func(line []byte) error, broken func(error) error) error {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		if len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if err := do(line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			return broken(fmt.Errorf("a line is longer than %d bytes", maxLine))
		case err != nil:
			return broken(err)
		}
	}
}

func (c *client) read(resp *http.Response, raw []byte, into any) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/json" {
		return c.stranger(resp, kind)
	}
	if resp.StatusCode >= 300 {
		var v api.ErrorBody
		if err := json.Unmarshal(raw, &v); err != nil || v.Error.Message == "" {
			return c.stranger(resp, kind)
		}
		e := &apiError{resp.StatusCode, v.Error}
		if e.status == http.StatusGatewayTimeout {
			return unsure{e}
		}
		return e
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return trouble("the answer of %s cannot be read: %v", c.base, err).hint("is this tool of the same version as the gateway?")
	}
	return nil
}

func (c *client) stranger(resp *http.Response, kind string) error {
	return trouble("what answers at %s is not an Apollo-11 gateway (HTTP %d, %s)", c.base, resp.StatusCode, orNone(kind)).
		hint("point elsewhere with --gateway URL or APOLLO_GATEWAY")
}

func orNone(s string) string {
	if s == "" {
		return "no content type"
	}
	return s
}

// unreachable explains why there was no answer.
func (c *client) unreachable(err error) error {
	var op *net.OpError
	var dns *net.DNSError
	refused := errors.As(err, &op) && op.Op == "dial"
	switch {
	case errors.Is(err, context.Canceled):
		return unsure{trouble("interrupted")}
	case errors.As(err, &dns):
		return trouble("cannot reach the gateway at %s: the name %s cannot be resolved", c.base, dns.Name).
			hint("point elsewhere with --gateway URL or APOLLO_GATEWAY")
	case refused && errors.Is(err, syscall.ECONNREFUSED):
		return trouble("cannot reach the gateway at %s: nothing listens there", c.base).
			hint("start it:         apollo-gateway --data DIR").
			hint("point elsewhere:  --gateway URL, or APOLLO_GATEWAY in the environment")
	case errors.Is(err, context.DeadlineExceeded):
		p := trouble("the gateway at %s did not answer within %v", c.base, c.limit).
			hint("is it the right address, and does the gateway run? see %s/healthz", c.base)
		if refused {
			return p
		}
		return unsure{p}
	case refused:
		return trouble("cannot reach the gateway at %s: %v", c.base, op.Err).
			hint("point elsewhere with --gateway URL or APOLLO_GATEWAY")
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	return unsure{trouble("the connection to %s broke before the answer: %v", c.base, err)}
}

// explain turns a refusal by the gateway into words for people.
func (c *client) explain(err error) error {
	var e *apiError
	if !errors.As(err, &e) {
		return err
	}
	text := e.Message
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	p := trouble("%s", text)
	if e.Hint != "" {
		p.hint("%s", e.Hint)
	}
	if e.status == http.StatusUnauthorized {
		p.hint("set APOLLO_USER and APOLLO_PASSWORD")
	}
	for _, m := range e.More {
		p.hint("also: %s", strings.TrimPrefix(m.Field+": "+m.Message, ": "))
	}
	return p
}
