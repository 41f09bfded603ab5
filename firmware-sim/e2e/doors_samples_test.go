package e2e

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/gateway"
)

func sample(t *testing.T, name string) (path, text string) {
	t.Helper()
	path = filepath.Join("../../deploy", name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(b)
}

// keys lists the names that a configuration file may have, nested ones too.
func keys(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		list = append(list, name)
		if f.Type.Kind() == reflect.Struct {
			list = append(list, keys(f.Type)...)
		}
	}
	return list
}

// shows holds that a sample names every key there is, set or commented out, and
// no other.
func shows(t *testing.T, text string, names []string) {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^ *(?:# )?([a-z_]+):(?: |$)`).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	for _, name := range names {
		if !slices.Contains(found, name) {
			t.Errorf("the sample does not show %s", name)
		}
	}
}

// The sample configurations load as they stand, and show every key.
func TestSampleConfigurations(t *testing.T) {
	path, text := sample(t, "gateway.yaml")
	var g gateway.Config
	if err := gateway.LoadConfig(path, &g); err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	if g.MQTT != gateway.DefaultMQTT || g.WebSocket != gateway.DefaultWebSocket || g.Narrowband != gateway.DefaultNarrowband ||
		g.HTTP != gateway.DefaultHTTP || g.Site != gateway.DefaultSite {
		t.Error("gateway.yaml says that it shows the defaults, but an address or the site differs")
	}
	shows(t, text, keys(reflect.TypeFor[gateway.Config]()))

	_, text = sample(t, "agent.yaml")
	a := fieldagent.DefaultConfig()
	if err := a.ReadConfig(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	shows(t, text, keys(reflect.TypeFor[fieldagent.Config]()))
	// What is commented out is right as well.
	whole := regexp.MustCompile(`(?m)^# ([a-z_]+: )`).ReplaceAllString(text, "$1")
	whole = strings.Replace(whole, "gpio: chardev", "gpio: sim", 1)
	whole = regexp.MustCompile(`(?m)^# (pins:| {2,}(?:- )?[a-z_]+: )`).ReplaceAllString(whole, "$1")
	a = fieldagent.DefaultConfig()
	if err := a.ReadConfig(strings.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	if len(a.Pins) != 3 {
		t.Errorf("the sample pin map has %d pins, want 3", len(a.Pins))
	}
}

// The gateway starts with the sample as it stands, but for its addresses and its
// directory, and with the sample of the users: everyone in his role and nobody
// else.
func TestF4_SampleUsers(t *testing.T) {
	config, _ := sample(t, "gateway.yaml")
	users, _ := sample(t, "users.yaml")
	s := newSite(t, "--config", config, "--users", users)
	password := filepath.Join(s.dir, "password")
	if err := os.WriteFile(password, []byte("change-me\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.agent("pump-1", "--username", "pump-1", "--password-file", password,
		"--narrowband-username", "pump-1-nb", "--narrowband-password-file", password)
	s.known("pump-1")
	s.publish(set("by-user", "GPIO2"), "-u", "scada", "-P", "change-me")
	s.seenSettled("by-user", "SUCCEEDED")
	var task struct{ Actor string }
	if s.fetch("/v1/tasks/by-user", &task); task.Actor != "scada" {
		t.Errorf("the task's actor is %q, want the user", task.Actor)
	}
	within(t, slow, "narrowband connection", func() (bool, string) {
		m := s.fetch("/metrics", nil)
		return strings.Contains(m, "\napollo_narrowband_connections 1\n"), m
	})
	for who, args := range map[string][]string{
		"nobody":                  nil,
		"a wrong password":        {"-u", "scada", "-P", "guess"},
		"an unknown user":         {"-u", "eve", "-P", "change-me"},
		"an agent":                {"-u", "pump-1", "-P", "change-me", "-i", "hmi"},
		"an agent at a task":      {"-u", "pump-1", "-P", "change-me", "-i", "agent/pump-1"},
		"a user as another board": {"-u", "scada", "-P", "change-me", "-i", "agent/pump-1"},
	} {
		out, err := s.tryPublish(set("bad-user", "GPIO3"), append([]string{"-V", "5"}, args...)...)
		if err == nil && !strings.Contains(out, "failed") {
			t.Errorf("%s may publish: %s", who, out)
		}
	}
	if _, _, code := s.tool("", "task", "status", "bad-user"); code != 1 {
		t.Errorf("a task was taken from somebody who may not submit")
	}
	if strings.Contains(s.gateway.output(), "change-me") {
		t.Error("a password stands in the log")
	}
}
