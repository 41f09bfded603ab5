package broker_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

func hashed(t *testing.T, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func site(t *testing.T) *broker.Users {
	t.Helper()
	u, err := broker.ParseUsers(strings.NewReader(fmt.Sprintf(`users:
  - {name: hmi, password_bcrypt: %q, role: operator}
  - {name: ops, password_bcrypt: %q, role: operator}
  - {name: pump, password_bcrypt: %q, role: agent, node: pump-1}
  - {name: pump-nb, password_bcrypt: %q, role: narrowband, node: p00001}
`, hashed(t, "a"), hashed(t, "b"), hashed(t, "c"), hashed(t, "d"))))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// F4: with a users file the password decides, and an agent is the node that
// the file says.
func TestF4_UsersFileDecidesWhoMayConnect(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) { c.Users = site(t) })
	cases := []struct {
		listener string
		o        connect
		code     byte // MQTT 3.1.1
	}{
		{"mqtt", connect{id: "x", user: "hmi", pass: "a"}, 0},
		{"mqtt", connect{id: "x", user: "hmi", pass: "a"}, 0}, // remembered
		{"mqtt", connect{id: "x", user: "hmi", pass: "b"}, 4},
		{"mqtt", connect{id: "x", user: "hmi", passFlag: true}, 4},
		{"mqtt", connect{id: "x", user: "nobody", pass: "a"}, 4},
		{"mqtt", connect{id: "x"}, 4},
		{"mqtt", connect{id: "agent/pump-1", user: "pump", pass: "c"}, 0},
		{"mqtt", connect{id: "agent/pump-2", user: "pump", pass: "c"}, 5},
		{"mqtt", connect{id: "agent/pump-1", user: "hmi", pass: "a"}, 5},
		{"mqtt", connect{id: "x", user: "pump", pass: "c"}, 5},
		{"mqtt", connect{id: "x", user: "pump-nb", pass: "d"}, 5},
		{"narrowband", connect{id: "nb/p00001", user: "pump-nb", pass: "d"}, 0},
		{"narrowband", connect{id: "nb/p00002", user: "pump-nb", pass: "d"}, 5},
		{"narrowband", connect{id: "nb/p00001", user: "pump", pass: "c"}, 5},
		{"narrowband", connect{id: "x", user: "hmi", pass: "a"}, 2},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s as %q on %s", tc.o.user, tc.o.id, tc.listener), func(t *testing.T) {
			c := open(t, b.Addr(tc.listener), tc.o)
			if ack := c.want(packets.Connack); ack.ReasonCode != tc.code {
				t.Errorf("code %d, want %d", ack.ReasonCode, tc.code)
			}
			_ = c.conn.Close()
		})
	}
}

// A client id in use can not be taken over by another user.
func TestAnotherUserCanNotTakeOverAClientID(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) { c.Users = site(t) })
	first := start(t, b.Addr("mqtt"), connect{id: "panel", user: "hmi", pass: "a"})
	if ack := open(t, b.Addr("mqtt"), connect{id: "panel", user: "ops", pass: "b"}).want(packets.Connack); ack.ReasonCode != 2 {
		t.Errorf("another user got code %d, want 2", ack.ReasonCode)
	}
	first.ping()
	start(t, b.Addr("mqtt"), connect{id: "panel", user: "hmi", pass: "a"}).ping()
	first.wantClosed()
}

// Faults of a users file are named with their line, all at once.
func TestParseUsersNamesEveryFault(t *testing.T) {
	good := hashed(t, "x")
	cases := []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "users:\n  - {name: a, password_bcrypt: " + good + ", role: operator, admin: true}\n", []string{"line 2", "admin"}},
		{"plain password", "users:\n  - {name: a, password: x, role: operator}\n", []string{"line 2", "password"}},
		{"several", "users:\n  - {name: a, password_bcrypt: secret, role: operator}\n\n  - {name: b, password_bcrypt: " + good + ", role: king}\n",
			[]string{"line 2", "not a bcrypt hash", "line 4", "king"}},
		{"twice", "users:\n  - {name: a, password_bcrypt: " + good + ", role: operator}\n  - {name: a, password_bcrypt: " + good + ", role: operator}\n",
			[]string{"line 3", "twice"}},
		{"agent without a node", "users:\n  - {name: a, password_bcrypt: " + good + ", role: agent}\n", []string{"line 2", "node"}},
		{"operator with a node", "users:\n  - {name: a, password_bcrypt: " + good + ", role: operator, node: n}\n", []string{"only for agents"}},
		{"no name", "users:\n  - {password_bcrypt: " + good + ", role: operator}\n", []string{"name is missing"}},
		{"empty", "", []string{"no users"}},
		{"two documents", "users: []\n---\nusers: []\n", []string{"more than one"}},
		{"not YAML", "users: [", []string{"users file"}},
		{"huge", strings.Repeat("#", 1<<20+1), []string{"over"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := broker.ParseUsers(strings.NewReader(tc.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q shows a password", err)
			}
		})
	}
}

// remote makes connections look as if they came over the network.
type remote struct{ net.Listener }

func (r remote) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	return remoteConn{c}, err
}

type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711} }

// Without a users file the broker serves its own host only, unless told otherwise.
func TestOpenBrokerServesItsOwnHostOnly(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		b := serve(t, accepting(), func(c *broker.Config) {
			c.AllowAnonymous = anonymous
			c.Listen = func(network, address string) (net.Listener, error) {
				l, err := net.Listen(network, address)
				return remote{l}, err
			}
		})
		want := byte(5)
		if anonymous {
			want = 0
		}
		if ack := open(t, b.Addr("mqtt"), connect{id: "x"}).want(packets.Connack); ack.ReasonCode != want {
			t.Errorf("anonymous %t: code %d, want %d", anonymous, ack.ReasonCode, want)
		}
	}
}

// Listening beyond the loopback interface without a users file is warned about.
func TestWarningsNameWhatIsOpen(t *testing.T) {
	cases := []struct {
		cfg  broker.Config
		want string
	}{
		{broker.Config{MQTT: "127.0.0.1:0"}, ""},
		{broker.Config{MQTT: "[::1]:0", WebSocket: "localhost:0"}, ""},
		{broker.Config{MQTT: "0.0.0.0:1883"}, "refused"},
		{broker.Config{MQTT: ":1883"}, "refused"},
		{broker.Config{Narrowband: "192.0.2.1:1884", AllowAnonymous: true}, "OPEN TO THE NETWORK"},
		{broker.Config{MQTT: "0.0.0.0:1883", Users: new(broker.Users)}, ""},
	}
	for _, tc := range cases {
		b, err := broker.New(tc.cfg, accepting(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(b.Warnings(), "\n")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: warnings %q, want %q", tc.cfg, got, tc.want)
		}
	}
}

// All faults of a configuration come at once.
func TestNewNamesEveryFaultOfTheConfiguration(t *testing.T) {
	_, err := broker.New(broker.Config{
		Site: "a/b", Users: new(broker.Users), AllowAnonymous: true, WebSocket: "nowhere",
		Limits: broker.Limits{PacketSize: 10, Unacked: -1, WriteStall: -1},
	}, accepting(), nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"site", "allow_anonymous", "nowhere", "packet size", "unacked", "write stall"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	if _, err := broker.New(broker.Config{}, accepting(), nil); err == nil {
		t.Error("a broker that listens nowhere was accepted")
	}
}
