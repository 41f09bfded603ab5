package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Faults of the publish itself, whatever its payload: each is answered so that
// the client can go on (A10, B9, B10, C2, M3, M5).
func TestB9_BadPublishesOverMQTT(t *testing.T) {
	d := newDoors(t)
	good := func(id string) string { return writeDoc(id, "1", "") }
	faults := []struct {
		name, topic, payload string
		retain               bool
		code                 string
		reason               byte // MQTT 5
		says                 string
	}{
		{"retain flag (A10)", taskTopic, good("bad-r"), true, "retained", 0x83, "retain"},
		{"retain flag, empty (A6)", taskTopic, "", true, "retained", 0x83, "retain"},
		{"wildcard", "apollo/+/task", good("bad-w"), false, "bad_topic", 0x90, taskTopic},
		{"wildcard at the end", taskTopic + "/#", good("bad-w"), false, "bad_topic", 0x90, taskTopic},
		{"empty topic", "", good("bad-t"), false, "bad_topic", 0x90, taskTopic},
		{"another site", "apollo/north/task", good("bad-s"), false, "not_authorized", 0x87, taskTopic},
		{"status topic", "apollo/default/task/queued-1/status", "{}", false, "not_authorized", 0x87, taskTopic},
		{"retained status (C2)", "apollo/default/task/queued-1/status", "", true, "not_authorized", 0x87, taskTopic},
		{"command topic", "apollo/default/cmd/pump-1", "\xa1\x00\x01", false, "not_authorized", 0x87, taskTopic},
		{"event topic", "apollo/default/evt/pump-1", "\xa1\x00\x01", false, "not_authorized", 0x87, taskTopic},
		{"narrowband topic", "n/abcdef", "\x00", false, "not_authorized", 0x87, taskTopic},
		{"task topic with a slash", taskTopic + "/", good("bad-t"), false, "not_authorized", 0x87, taskTopic},
		{"system topic (B10)", "$SYS/broker/clients", "1", false, "bad_topic", 0x90, taskTopic},
		{"shared subscription (B10)", "$share/g/" + taskTopic, good("bad-t"), false, "bad_topic", 0x90, taskTopic},
		{"safe topic without a node", "apollo/default/safe", "", false, "not_authorized", 0x87, "apollo/default/safe/NODE"},
		{"safe topic with an odd node", "apollo/default/safe/a b", "", true, "not_authorized", 0x87, "apollo/default/safe/NODE"},
		{"safe topic with a level too many", "apollo/default/safe/pump-1/GPIO17/on", "", false, "not_authorized", 0x87, "apollo/default/safe/NODE"},
		{"safe topic with a wildcard", "apollo/default/safe/+", "", false, "bad_topic", 0x90, taskTopic},
		{"longest topic (B10)", strings.Repeat("x", 65535), good("bad-t"), false, "not_authorized", 0x87, taskTopic},
	}
	for _, version := range []byte{4, 5} {
		for _, qos := range []byte{0, 1, 2} {
			c := d.dialMQTT(fmt.Sprintf("hmi-%d-%d", version, qos), version)
			for _, f := range faults {
				if !t.Run(fmt.Sprintf("version %d QoS %d %s", version, qos, f.name), func(t *testing.T) {
					c.t = t
					ack := c.publish(f.topic, f.payload, qos, f.retain)
					if qos > 0 && version == 5 && (ack.ReasonCode != f.reason || ack.Properties.ReasonString == "") {
						t.Errorf("reason code %#x %q, want %#x", ack.ReasonCode, ack.Properties.ReasonString, f.reason)
					}
					if r := c.refusal(); r.Error.Code != f.code || !strings.Contains(r.says(), f.says) {
						t.Errorf("refused as %s: %s", r.Error.Code, r.says())
					}
				}) {
					t.FailNow()
				}
			}
			id := "good-" + c.id
			if ack := c.publish(taskTopic, writeDoc(id, "1", `,"ttl":1e6`), 1, false); ack.ReasonCode != 0 {
				t.Errorf("a good publish behind the bad ones: %#x", ack.ReasonCode)
			}
			d.ids = append(d.ids, id)
			c.quiet()
		}
	}
	d.unharmed()
}

// A17: a QoS 2 publish that is sent again before its release is refused once.
func TestA17_RetransmittedBadPublish(t *testing.T) {
	d := newDoors(t)
	c := d.dialMQTT("hmi", 4)
	c.publish(taskTopic, "[object Object]", 1, false)
	c.refusal()
	c.next++
	c.offer(taskTopic, "[object Object]", 2, false, false)
	c.ack()
	c.refusal()
	for range 5 {
		c.offer(taskTopic, "[object Object]", 2, false, true)
		c.ack() // PUBREC again
	}
	c.release()
	c.publish(taskTopic, "{}", 1, false)
	if r := c.refusal(); r.Error.Code != "missing" {
		t.Errorf("the next refusal is %s: %s, want that of the next publish", r.Error.Code, r.says())
	}
	c.quiet()
	d.deadLetters(0, "hmi", []bad{{says: "JSON"}, {says: "JSON"}, {says: "missing"}})
	d.unharmed()
}

// Requests that are wrong before their document is looked at.
func TestBadRequestsOverHTTP(t *testing.T) {
	d := newDoors(t)
	for _, r := range []struct {
		name, method, path, doc, kind string
		header                        map[string]string
		status                        int
		code                          string
	}{
		{name: "unknown path", method: "POST", path: "/v2/tasks", status: 404, code: "no_such_path"},
		{name: "wrong method", method: "DELETE", path: "/v1/tasks", status: 405, code: "method_not_allowed"},
		{name: "not a task by its type", method: "POST", path: "/v1/tasks", kind: "image/png", status: 415, code: "unsupported_media_type"},
		{name: "compressed", method: "POST", path: "/v1/tasks", kind: "application/json", header: map[string]string{"Content-Encoding": "gzip"}, status: 415, code: "unsupported_encoding"},
		{name: "unknown parameter", method: "POST", path: "/v1/tasks?dry_run=1", kind: "application/json", status: 400, code: "unknown_field"},
		{name: "unusable key", method: "POST", path: "/v1/tasks", doc: `{"intent":"collect_metrics","node":"a"}`, kind: "application/json", header: map[string]string{"Idempotency-Key": "a b"}, status: 400, code: "bad_value"},
		{name: "key against task id", method: "POST", path: "/v1/tasks", doc: writeDoc("bad-k", "1", ""), kind: "application/json", header: map[string]string{"Idempotency-Key": "other"}, status: 400, code: "contradicts"},
		{name: "another host's name", method: "POST", path: "/v1/tasks", doc: writeDoc("bad-h", "1", ""), kind: "application/json", header: map[string]string{"Host": "evil.example"}, status: 421, code: "host_refused"},
		{name: "a browser page", method: "POST", path: "/v1/tasks", doc: writeDoc("bad-o", "1", ""), kind: "text/plain", header: map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}, status: 403, code: "cross_origin"},
		{name: "YAML bomb", method: "POST", path: "/v1/tasks", doc: yamlBomb, kind: "application/yaml", status: 400},
		{name: "YAML tag", method: "POST", path: "/v1/tasks", doc: "intent: !!python/object:os.system x\nnode: a\n", kind: "application/yaml", status: 400},
		{name: "YAML duplicate", method: "POST", path: "/v1/tasks", doc: "intent: collect_metrics\nnode: a\nnode: b\n", kind: "application/yaml", status: 400, code: "duplicate"},
		{name: "unknown task", method: "GET", path: "/v1/tasks/nobody", status: 404, code: "not_found"},
		{name: "unusable task id", method: "GET", path: "/v1/tasks/a%20b", status: 400, code: "bad_value"},
		{name: "cancel of an unknown task", method: "POST", path: "/v1/tasks/nobody/cancel", status: 404, code: "not_found"},
	} {
		t.Run(r.name, func(t *testing.T) {
			req, err := http.NewRequest(r.method, "http://"+d.http+r.path, strings.NewReader(r.doc))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range r.header {
				req.Header.Set(k, v)
			}
			req.Host = r.header["Host"]
			if r.kind != "" {
				req.Header.Set("Content-Type", r.kind)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			status, body := readAll(t, resp)
			var v refusal
			if err := json.Unmarshal([]byte(body), &v); err != nil || status != r.status {
				t.Fatalf("%d %s (%v), want %d", status, body, err, r.status)
			}
			if r.code != "" && v.Error.Code != r.code || v.Error.Message == "" {
				t.Errorf("%+v, want %s", v.Error, r.code)
			}
		})
	}
	d.unharmed()
}

const yamlBomb = `a: &a [x,x,x,x,x,x,x,x,x]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]
e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]
f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]
intent: collect_metrics
node: a
args: {v: *f}
`

// Bytes that are neither HTTP nor MQTT end their own connection and nothing else.
func TestRubbishOnEveryDoor(t *testing.T) {
	d := newDoors(t)
	for door, addr := range map[string]string{"mqtt": d.mqtt, "narrowband": d.narrow, "ws": d.ws, "http": d.http} {
		for name, rubbish := range map[string]string{
			"HTTP": "GET / HTTP/1.0\r\n\r\n", "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "zeros": string(make([]byte, 4096)),
			"no CONNECT": "\xc0\x00", "half a CONNECT": "\x10\x20\x00\x04MQ", "longest length": "\x10\xff\xff\xff\x7f",
			"text": "hello\n", "MQTT 3.1.1 without protocol": "\x10\x02\x00\x00",
		} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, rubbish); err != nil {
				t.Errorf("%s on %s: %v", name, door, err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Logf("%s on %s: %v", name, door, err) // it was faster
			}
			if err := conn.SetReadDeadline(time.Now().Add(slow)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
				t.Errorf("%s on %s: the connection is still open", name, door)
			}
			_ = conn.Close() // only read from
		}
	}
	d.unharmed()
	d.works()
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}
