package cli_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/cli"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"apollo": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(cli.Main(ctx, "v1.2.3", os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}})
}

// TestScripts runs the tool as its users do, against a gateway in memory. The
// scripts steer the gateway with the commands below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", // rewrites expected output
		Setup: func(e *testscript.Env) error {
			s := newServer()
			e.Defer(s.http.Close)
			e.Values["server"] = s
			e.Setenv("APOLLO_GATEWAY", s.http.URL)
			e.Setenv("APOLLO_ACTOR", "olga@panel")
			e.Setenv("TZ", "UTC")
			// The race detector would let each of some hundred runs end a second late.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"agent":      scriptAgent,
			"disconnect": onServer("NODE REASON", 2, func(s *server, args []string) error { s.g.Disconnect(args[0], args[1]); return nil }),
			"finish":     onServer("NODE", 1, func(s *server, args []string) error { return s.finish(args[0]) }),
			"advance":    onServer("DURATION", 1, func(s *server, args []string) error { return s.advance(args[0]) }),
			"gateway":    onServer("hangup|away N, users|page|stopping|broken|fine", -1, func(s *server, args []string) error { return s.set(args) }),
			"garbage": onServer("KIND FROM REASON BYTES", 4, func(s *server, args []string) error {
				s.g.Garbage(args[0], args[1], unquote(args[2]), []byte(unquote(args[3])))
				return nil
			}),
			"exits": scriptExits,
			"clean": scriptClean,
		},
	})
}

// onServer is a command with n arguments, with any number for -1. What it does not
// know it refuses: a word that nobody reads would make a script say what it does
// not test.
func onServer(usage string, n int, do func(*server, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || n >= 0 && len(args) != n {
			ts.Fatalf("its arguments are %s, without !; there are %q", usage, args)
		}
		if err := do(ts.Value("server").(*server), args); err != nil {
			ts.Fatalf("%v; its arguments are %s", err, usage)
		}
	}
}

// exits CODE COMMAND... runs the tool and checks its exit code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("its arguments are CODE COMMAND..., without !; there are %q", args)
	}
	if _, err := strconv.ParseUint(args[0], 10, 8); err != nil {
		ts.Fatalf("%q is no exit code", args[0])
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// agent NAME BEHAVIOUR [KEY=VALUE label ...]
func scriptAgent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("its arguments are NAME BEHAVIOUR [KEY=VALUE label ...], without !; there are %q", args)
	}
	does := map[string]apitest.Behaviour{
		"ok":     {Payload: map[string]any{"level": 1}},
		"safe":   {Rules: true, Payload: wire.SafeReport{Driven: []string{"GPIO17", "GPIO27"}}.Map()},
		"freed":  {Rules: true, Payload: wire.SafeReport{Released: []string{"GPIO17", "GPIO27"}}.Map()},
		"idle":   {Rules: true, Payload: wire.SafeReport{Released: []string{}}.Map()},
		"lamp":   {Rules: true, Payload: wire.SafeReport{Driven: []string{"GPIO17"}, NotMoved: []string{"lamp"}}.Map()},
		"newer":  {Rules: true, Payload: wire.SafeReport{Newer: []string{"GPIO17"}}.Map()},
		"crowd":  {Rules: true, Payload: wire.SafeReport{Driven: []string{"GPIO17"}, Unlisted: 1}.Map()},
		"bare":   {Rules: true, Code: wire.CodeUnsupported, Detail: "lamp has no safe level: it was not moved"},
		"deaf":   {Rules: true, Silent: true},
		"hold":   {Hold: true},
		"silent": {Silent: true},
		"fail":   {Code: wire.CodeNoSuchPin, Detail: "the board has no pin GPIO17"},
		"cut":    {Code: wire.CodeInterrupted, Detail: "the power failed in between"},
		"evil":   {Code: wire.CodeFailed, Detail: "\x1b[2J\x1b]0;gotcha\a<b>\u202eolleh\u009b31m"},
	}
	b, ok := does[args[1]]
	if !ok {
		ts.Fatalf("no behaviour %q; there are %v", args[1], slices.Sorted(maps.Keys(does)))
	}
	labels := map[string]string{}
	for _, l := range args[2:] {
		k, v, ok := strings.Cut(l, "=")
		if _, twice := labels[k]; !ok || k == "" || twice {
			ts.Fatalf("%q is not a label KEY=VALUE, or there twice", l)
		}
		labels[k] = v
	}
	ts.Value("server").(*server).g.Connect(args[0], labels, b)
}

// unquote lets a script write any byte.
func unquote(s string) string {
	u, err := strconv.Unquote(`"` + s + `"`)
	if err != nil {
		return s
	}
	return u
}

// server is the gateway of a script, with a network that can be made to fail.
type server struct {
	g    *apitest.Gateway
	http *httptest.Server

	mu     sync.Mutex
	hangup int    // answers to lose
	away   int    // requests to answer with 503
	users  bool   // credentials are asked for
	page   string // answer with this page instead
}

func newServer() *server {
	s := &server{g: apitest.New(engine.Config{})}
	open := api.New(s.g, s.g, api.Options{Now: s.g.Now})
	closed := api.New(s.g, s.g, api.Options{Now: s.g.Now, Users: func(n, p string) bool { return n == "olga" && p == "s3cret" }})
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lose, away, users, page := s.next()
		switch {
		case page != "":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, page)
		case lose:
			open.ServeHTTP(httptest.NewRecorder(), r) // it happens, but nobody is told
			panic(http.ErrAbortHandler)
		case away:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"error":{"code":"stopping","message":"the gateway is shutting down"}}`)
		case users:
			closed.ServeHTTP(w, r)
		default:
			open.ServeHTTP(w, r)
		}
	}))
	return s
}

func (s *server) next() (lose, away, users bool, page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lose = s.hangup > 0; lose {
		s.hangup--
		return lose, false, s.users, s.page
	}
	if away = s.away > 0; away {
		s.away--
	}
	return false, away, s.users, s.page
}

// set makes the gateway fail in some way.
func (s *server) set(args []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := setting(args)
	if err != nil {
		return err
	}
	switch args[0] {
	case "hangup":
		s.hangup = n
	case "away":
		s.away = n
	case "users":
		s.users = true
	case "page":
		s.page = "<html>router login</html>"
	case "stopping":
		s.g.Fail(api.ErrStopping)
	case "broken":
		s.g.Fail(errors.New("commit: input/output error"))
	case "fine":
		s.g.Fail(nil)
	default:
		return fmt.Errorf("no gateway %s", args[0])
	}
	return nil
}

// setting reads the number of those settings that have one.
func setting(args []string) (n int, err error) {
	want := 1
	if len(args) > 0 && (args[0] == "hangup" || args[0] == "away") {
		want = 2
	}
	if len(args) != want {
		return 0, fmt.Errorf("%d words in %q, want %d", len(args), args, want)
	}
	if want == 2 {
		n, err = strconv.Atoi(args[1])
	}
	return n, err
}

func (s *server) advance(d string) error {
	t, err := time.ParseDuration(d)
	if err != nil {
		return err
	}
	s.g.Advance(t)
	return nil
}

// finish ends what a node holds, once it holds something: the submission may
// still be on its way.
func (s *server) finish(node string) error {
	deadline := time.Now().Add(20 * time.Second)
	for s.g.Finish(node) == 0 {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s got nothing to do", node)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// clean: the output of the last command holds nothing that a terminal obeys.
func scriptClean(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("it has no arguments and no !; there are %q", args)
	}
	for _, name := range []string{"stdout", "stderr"} {
		for _, r := range ts.ReadFile(name) {
			if r != '\n' && !unicode.IsPrint(r) {
				ts.Fatalf("%s holds %U", name, r)
			}
		}
	}
}
