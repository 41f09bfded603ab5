package broker

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// wsHeaderBytes bounds the HTTP request that asks for the upgrade.
	wsHeaderBytes = 8 << 10
	// wsControlWait bounds the write of a control frame.
	wsControlWait = time.Second
)

var errWSText = errors.New("websocket message is not binary")

// wsSource serves MQTT over WebSocket and yields its connections. The HTTP
// server sits on the same guarded acceptor as plain MQTT.
type wsSource struct {
	*acceptor
	server *http.Server
	conns  chan *conn
	closed chan struct{}
	once   sync.Once
}

func newWSSource(a *acceptor, origins []string, log *slog.Logger) *wsSource {
	w := &wsSource{acceptor: a, conns: make(chan *conn), closed: make(chan struct{})}
	up := &websocket.Upgrader{
		Subprotocols:     []string{"mqtt", "mqttv3.1"},
		HandshakeTimeout: a.gate.limits.ConnectTimeout,
		CheckOrigin:      func(r *http.Request) bool { return originAllowed(r, origins) },
	}
	w.server = &http.Server{
		ReadHeaderTimeout: a.gate.limits.ConnectTimeout,
		IdleTimeout:       a.gate.limits.ConnectTimeout,
		MaxHeaderBytes:    wsHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			ws, err := up.Upgrade(rw, r, nil)
			if err != nil {
				return // Upgrade has answered
			}
			if c := a.gate.admit(&wsConn{Conn: ws.NetConn(), ws: ws}, wsListener); c != nil {
				w.hand(c)
			}
		}),
	}
	a.gate.work.Go(func() {
		if err := w.server.Serve(a); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("websocket listener ended", "err", err)
		}
	})
	return w
}

func (w *wsSource) hand(c *conn) {
	select {
	case w.conns <- c:
	case <-w.closed:
		c.end(Shutdown)
	}
}

func (w *wsSource) next() (*conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wsSource) address() net.Addr { return w.Addr() }

// Close ends the HTTP server and with it every socket not yet upgraded.
func (w *wsSource) Close() error {
	w.once.Do(func() { close(w.closed) })
	return errors.Join(w.server.Close(), w.acceptor.Close())
}

// originAllowed keeps web pages of other hosts from driving a gateway that
// their visitor's browser happens to reach. Programs send no Origin.
func originAllowed(r *http.Request, origins []string) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return u.Hostname() != "" && strings.EqualFold(u.Hostname(), strings.Trim(host, "[]"))
}

// wsConn is a WebSocket as a stream of bytes.
type wsConn struct {
	net.Conn // the socket: addresses, deadlines
	ws       *websocket.Conn
	message  io.Reader
}

// Read reads on over the borders of messages.
func (w *wsConn) Read(p []byte) (int, error) {
	for {
		if w.message == nil {
			kind, message, err := w.ws.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errWSText
			}
			w.message = message
		}
		n, err := w.message.Read(p)
		if errors.Is(err, io.EOF) {
			w.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write sends p as one message.
func (w *wsConn) Write(p []byte) (int, error) {
	if err := w.ws.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline bounds the writes of messages.
func (w *wsConn) SetWriteDeadline(t time.Time) error { return w.ws.SetWriteDeadline(t) }

// CloseWrite sends the close frame.
func (w *wsConn) CloseWrite() error {
	return w.ws.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(wsControlWait))
}
