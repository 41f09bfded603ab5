package broker

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/apollo-11/apollo11/wire"
)

const (
	// maxUsersFile bounds the users file: some thousand entries.
	maxUsersFile = 1 << 20
	// bcryptAtOnce is how many passwords are checked at the same time. One
	// check keeps a core of a small board busy for a second; the other cores
	// belong to the commands.
	bcryptAtOnce = 1
)

// Users is who may connect. It is safe for concurrent use.
type Users struct {
	byName map[string]user
	turn   chan struct{} // bcryptAtOnce places
	key    [sha256.Size]byte

	// known remembers keyed digests of passwords that were right, so that a
	// fleet which returns at once does not queue up behind bcrypt.
	mu    sync.Mutex
	known map[string][sha256.Size]byte
}

type user struct {
	hash []byte
	role Role
	node string
}

type usersFile struct {
	Users []userEntry `yaml:"users"`
}

type userEntry struct {
	Name     string `yaml:"name"`
	Password string `yaml:"password_bcrypt"`
	Role     string `yaml:"role"`
	Node     string `yaml:"node"`
}

// ParseUsers reads a users file:
//
//	users:
//	  - {name: hmi, password_bcrypt: "$2a$...", role: operator}
//	  - {name: pump-1, password_bcrypt: "$2a$...", role: agent, node: pump-1}
//	  - {name: pump-1-nb, password_bcrypt: "$2a$...", role: narrowband, node: 7k2m9p}
//
// node is the node of an agent and the short node id of a narrowband user.
// Unknown keys are refused with their line; all faults are returned at once.
func ParseUsers(r io.Reader) (*Users, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxUsersFile+1))
	if err != nil {
		return nil, fmt.Errorf("read users file: %w", err)
	}
	if len(text) > maxUsersFile {
		return nil, fmt.Errorf("users file is over %d bytes", maxUsersFile)
	}
	var file usersFile
	if err := decodeStrict(text, &file); err != nil {
		return nil, fmt.Errorf("users file: %w", err)
	}
	if len(file.Users) == 0 {
		return nil, errors.New("users file: no users; nobody could connect")
	}
	u := &Users{
		byName: make(map[string]user, len(file.Users)),
		turn:   make(chan struct{}, bcryptAtOnce),
		known:  make(map[string][sha256.Size]byte),
	}
	if _, err := rand.Read(u.key[:]); err != nil {
		return nil, fmt.Errorf("users file: %w", err)
	}
	lines := entryLines(text)
	var faults []error
	for i, entry := range file.Users {
		line := 0
		if i < len(lines) {
			line = lines[i]
		}
		parsed, err := entry.parse()
		if err == nil {
			if _, twice := u.byName[entry.Name]; twice {
				err = errors.New("name is used twice")
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("users file line %d: user %q: %w", line, entry.Name, err))
			continue
		}
		u.byName[entry.Name] = parsed
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return u, nil
}

func (e userEntry) parse() (user, error) {
	if e.Name == "" {
		return user{}, errors.New("name is missing")
	}
	if _, err := bcrypt.Cost([]byte(e.Password)); err != nil {
		return user{}, fmt.Errorf("password_bcrypt is not a bcrypt hash (htpasswd -nB makes one): %w", err)
	}
	u := user{hash: []byte(e.Password), node: e.Node}
	switch e.Role {
	case Operator.String():
		u.role = Operator
	case Agent.String():
		u.role = Agent
	case NarrowbandAgent.String():
		u.role = NarrowbandAgent
	default:
		return user{}, fmt.Errorf("role %q: want operator, agent or narrowband", e.Role)
	}
	switch {
	case u.role == Operator && e.Node != "":
		return user{}, errors.New("node is only for agents")
	case u.role != Operator:
		return u, checkNode(u.role, e.Node)
	}
	return u, nil
}

// checkNode checks the node of an agent or the short id of a narrowband agent.
func checkNode(role Role, node string) error {
	if role == NarrowbandAgent {
		return wire.CheckShort(node)
	}
	return wire.CheckNode(node)
}

// entryLines returns the line of each entry, for messages.
func entryLines(text []byte) []int {
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil || len(root.Content) == 0 {
		return nil
	}
	top := root.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != "users" {
			continue
		}
		var lines []int
		for _, entry := range top.Content[i+1].Content {
			lines = append(lines, entry.Line)
		}
		return lines
	}
	return nil
}

// check returns the user if the password is right. It waits for its turn until
// gone is closed.
func (u *Users) check(name string, password []byte, gone <-chan struct{}) (user, bool) {
	entry, ok := u.byName[name]
	if !ok {
		return user{}, false
	}
	digest := u.digest(name, password)
	u.mu.Lock()
	seen, known := u.known[name]
	u.mu.Unlock()
	if known && hmac.Equal(seen[:], digest[:]) {
		return entry, true
	}
	select {
	case u.turn <- struct{}{}:
	case <-gone:
		return user{}, false
	}
	err := bcrypt.CompareHashAndPassword(entry.hash, password)
	<-u.turn
	if err != nil {
		return user{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[name] = digest
	return entry, true
}

func (u *Users) digest(name string, password []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, u.key[:])
	fmt.Fprintf(mac, "%d:%s:", len(name), name)
	mac.Write(password)
	return [sha256.Size]byte(mac.Sum(nil))
}

// decodeStrict decodes the only YAML document of text and refuses unknown keys.
func decodeStrict(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one YAML document")
	}
	return nil
}
