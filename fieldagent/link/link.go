package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// Limits and intervals.
const (
	// MaxPacket bounds a packet from the broker: a message of the protocol and
	// its topic fit twice.
	MaxPacket = 64 << 10
	// WriteLimit bounds one write to the network.
	WriteLimit = 10 * time.Second
	// ConnectLimit bounds dialling and the handshake, and the subscription.
	ConnectLimit = 10 * time.Second
	// BackoffLeast and BackoffMost bound the wait between two attempts.
	BackoffLeast = 200 * time.Millisecond
	BackoffMost  = 30 * time.Second
	// steady is how long a connection must have lasted to count as good. After a
	// shorter one the wait is at most shortMost: the gateway is there, and a
	// gateway or line that fails again and again must be found soon in between;
	// but two agents under one name, which take the connection from each other,
	// must not do so all the time.
	steady    = 5 * time.Second
	shortMost = time.Second
	// outQueue is how many messages wait for the network. A whole window of
	// events and what goes beside it fit; more is dropped and sent again later.
	outQueue = 256
	// flushLimit bounds sending what is queued when the link is closed, and
	// closeQuiesce the polite end of the MQTT session after that, in ms.
	flushLimit   = time.Second
	closeQuiesce = 250
	// pingLimit is how long the client waits for the answer to a ping.
	pingLimit = 8 * time.Second
)

// Options say where a Link connects and to whom it hands what arrives.
type Options struct {
	// URL is tcp://host:port or ws://host:port/path.
	URL       string
	ClientID  string
	Username  string
	Password  string
	Subscribe string // the topic to read
	Publish   string // the topic to write
	// KeepAlive is the longest silence of the agent, whole seconds.
	KeepAlive time.Duration
	// Open is called before every attempt. It returns a number for the connection
	// and its last will, nil for none. Required.
	Open func() (session uint64, will []byte)
	// Up and Down tell of the connection, in turn, from the goroutine of Run. They
	// may block until ctx ends.
	Up   func(ctx context.Context, session uint64)
	Down func(ctx context.Context)
	// Message takes what arrives and must not block. It reports whether it was
	// taken. The payload is its own.
	Message func(payload []byte) bool
	// Jitter returns a number in [0,1).
	Jitter func() float64
	// Dial opens the network connection of a tcp URL; nil means the system's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  *slog.Logger
}

// CheckURL reports whether s is an address that a Link can connect to.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("%q is not an address; write for example tcp://10.0.0.5:1883", s)
	}
	switch {
	case u.Scheme != "tcp" && u.Scheme != "ws":
		return fmt.Errorf("%q: the scheme must be tcp or ws; write for example tcp://10.0.0.5:1883", s)
	case u.Hostname() == "" || u.Port() == "":
		return fmt.Errorf("%q: host and port are needed; write for example %s://10.0.0.5:1883", s, u.Scheme)
	case u.User != nil:
		return fmt.Errorf("%s://%s: credentials do not belong in the address; use username and password_file", u.Scheme, u.Host)
	}
	return nil
}

// Link is one connection that is made again and again.
type Link struct {
	o       Options
	dropped atomic.Uint64

	mu  sync.Mutex
	out chan []byte // of the connection that is up; nil while none is
}

// New checks the options.
func New(o Options) (*Link, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	if o.Open == nil || o.Up == nil || o.Down == nil || o.Message == nil || o.Jitter == nil || o.Log == nil {
		return nil, errors.New("link: an option is missing")
	}
	if o.KeepAlive < time.Second {
		return nil, fmt.Errorf("link: keepalive of %v, at least a second is needed", o.KeepAlive)
	}
	if o.Dial == nil {
		d := &net.Dialer{Timeout: ConnectLimit}
		o.Dial = d.DialContext
	}
	return &Link{o: o}, nil
}

// Send queues a message for the connection that is up and reports whether there
// was one with room. It never blocks. The payload must not change any more.
func (l *Link) Send(payload []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return false
	}
	select {
	case l.out <- payload:
		return true
	default:
		l.dropped.Add(1)
		return false
	}
}

// Dropped counts messages that were lost here: those that found the queue full,
// and those that the receiver did not take.
func (l *Link) Dropped() uint64 { return l.dropped.Load() }

func (l *Link) setOut(out chan []byte) {
	l.mu.Lock()
	l.out = out
	l.mu.Unlock()
}

// Run keeps the connection until ctx ends; then it sends what is queued, takes
// leave of the broker, and returns.
func (l *Link) Run(ctx context.Context) {
	wait := BackoffLeast
	told := false
	for ctx.Err() == nil {
		began := time.Now()
		up, err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case up && time.Since(began) >= steady:
			wait = BackoffLeast
		case up:
			wait = min(wait, shortMost)
		}
		level := slog.LevelWarn
		if told && !up {
			level = slog.LevelDebug // said already
		}
		told = !up
		text := "connection lost"
		if !up {
			text = "no connection; trying again"
		}
		pause := wait/2 + time.Duration(l.o.Jitter()*float64(wait/2))
		l.o.Log.Log(ctx, level, text, "url", l.o.URL, "err", err, "next_attempt", pause.Round(time.Millisecond))
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		wait = min(2*wait, BackoffMost)
	}
}

// once makes one connection and keeps it as long as it lasts.
func (l *Link) once(ctx context.Context) (up bool, err error) {
	// hard outlives ctx until the leave has been taken; its end closes the socket.
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	session, will := l.o.Open()
	lost := make(chan error, 1)
	client := mqtt.NewClient(l.clientOptions(hard, will, lost))

	stopConnecting := context.AfterFunc(ctx, cut)
	err = wait(client.Connect(), ConnectLimit+time.Second)
	if err == nil {
		err = subscribe(client, l.o.Subscribe)
	}
	if !stopConnecting() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cut()
		client.Disconnect(0)
		return false, err
	}

	out := make(chan []byte, outQueue)
	l.setOut(out)
	l.o.Log.Info("connected", "url", l.o.URL, "client_id", l.o.ClientID)
	l.o.Up(ctx, session)
	err = l.pump(ctx, client, out, lost)
	l.setOut(nil)
	l.o.Down(ctx)
	if ctx.Err() != nil {
		l.flush(client, out)
		client.Disconnect(closeQuiesce)
	}
	return true, err
}

// pump sends what is queued until the connection is lost or ctx ends.
func (l *Link) pump(ctx context.Context, client mqtt.Client, out chan []byte, lost chan error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			return err
		case p := <-out:
			if err := l.publish(client, p, WriteLimit); err != nil {
				return err
			}
		}
	}
}

func (l *Link) flush(client mqtt.Client, out chan []byte) {
	end := time.Now().Add(flushLimit)
	for time.Now().Before(end) {
		select {
		case p := <-out:
			if err := l.publish(client, p, time.Until(end)); err != nil {
				return
			}
		default:
			return
		}
	}
}

func (l *Link) publish(client mqtt.Client, p []byte, limit time.Duration) error {
	if err := wait(client.Publish(l.o.Publish, 0, false, p), limit); err != nil {
		client.Disconnect(0)
		return fmt.Errorf("publish to %s: %w", l.o.Publish, err)
	}
	return nil
}

func subscribe(client mqtt.Client, topic string) error {
	token := client.Subscribe(topic, 0, nil)
	if err := wait(token, ConnectLimit); err != nil {
		return fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	// A refusal is not an error of the token.
	if s, ok := token.(*mqtt.SubscribeToken); ok {
		if code := s.Result()[topic]; code > 2 {
			return fmt.Errorf("subscribe to %s: the broker refuses it (code %#02x): is this the right node name, are the credentials those of this node?", topic, code)
		}
	}
	return nil
}

func wait(t mqtt.Token, limit time.Duration) error {
	if !t.WaitTimeout(limit) {
		return fmt.Errorf("no answer within %v", limit.Round(time.Millisecond))
	}
	return t.Error()
}

func (l *Link) clientOptions(hard context.Context, will []byte, lost chan<- error) *mqtt.ClientOptions {
	o := mqtt.NewClientOptions().AddBroker(l.o.URL)
	o.SetClientID(l.o.ClientID).SetUsername(l.o.Username).SetPassword(l.o.Password)
	o.SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false)
	o.SetKeepAlive(l.o.KeepAlive).SetPingTimeout(pingLimit)
	o.SetConnectTimeout(ConnectLimit).SetWriteTimeout(WriteLimit).SetOrderMatters(true)
	if will != nil {
		o.SetBinaryWill(l.o.Publish, will, 0, false)
	}
	o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		if !l.o.Message(m.Payload()) {
			l.dropped.Add(1)
		}
	})
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) {
		select {
		case lost <- err:
		default:
		}
	})
	o.SetCustomOpenConnectionFn(func(u *url.URL, _ mqtt.ClientOptions) (net.Conn, error) {
		conn, err := l.dial(hard, u)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(hard, func() { _ = conn.Close() })
		return &guardedConn{Conn: conn, idle: l.o.KeepAlive * 3 / 2, write: WriteLimit, in: frames{limit: MaxPacket}}, nil
	})
	return o
}

func (l *Link) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	if u.Scheme == "ws" {
		return mqtt.NewWebsocket(u.String(), nil, ConnectLimit, nil, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, ConnectLimit)
	defer cancel()
	return l.o.Dial(ctx, "tcp", u.Host)
}
