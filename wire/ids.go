package wire

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of names. They stand in topics and keys, so their characters are
// limited to letters, digits and . _ : - (no level separator, no wildcard).
const (
	MaxSiteLen   = 32
	MaxNodeLen   = 64
	MaxTaskIDLen = 128
	MaxIntentLen = 64
	MaxPinLen    = 64
	// MaxKeyLen bounds an idempotency key: site, 13 to 16 digits of time, 20 of
	// sequence, 4 of check, 3 separators.
	MaxKeyLen = MaxSiteLen + 43
	// MaxKeyMillis is the latest creation time that a key can carry: 16 digits.
	MaxKeyMillis = 9_999_999_999_999_999
	// ShortLen is the length of a short node id, 30 bits in base 32.
	ShortLen = 6
)

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '.' || c == '_' || c == ':' || c == '-'
}

func checkName(what, s string, limit int) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if len(s) > limit {
		return fmt.Errorf("%s %q is %d bytes long, the limit is %d", what, clip(s), len(s), limit)
	}
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) {
			return fmt.Errorf("%s %q has the character %q at position %d; allowed are letters, digits and . _ : -", what, clip(s), s[i], i+1)
		}
	}
	return nil
}

// clip shortens hostile text for an error message, between two characters.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return cut(s, most) + "..."
}

// cut returns the longest start of s that has at most n bytes and ends between
// two characters.
func cut(s string, n int) string {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}

// CheckSite reports whether s may name a site.
func CheckSite(s string) error { return checkName("site", s, MaxSiteLen) }

// CheckNode reports whether s may name a node.
func CheckNode(s string) error { return checkName("node", s, MaxNodeLen) }

// CheckTaskID reports whether s may be a task id.
func CheckTaskID(s string) error { return checkName("task_id", s, MaxTaskIDLen) }

// CheckPin reports whether s may name a pin.
func CheckPin(s string) error { return checkName("pin", s, MaxPinLen) }

// CheckIntent reports whether s may name an intent: lower-case words joined by
// dots or underscores.
func CheckIntent(s string) error {
	if s == "" {
		return fmt.Errorf("intent is empty")
	}
	if len(s) > MaxIntentLen {
		return fmt.Errorf("intent %q is %d bytes long, the limit is %d", clip(s), len(s), MaxIntentLen)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '.' || c == '_') {
			continue
		}
		return fmt.Errorf("intent %q has the character %q at position %d; an intent is lower-case letters, digits, . and _, like gpio.write", clip(s), c, i+1)
	}
	return nil
}

// Key is the idempotency key of an instruction (A4). It is the same on every
// resend and retry, and can be checked without knowing anything else:
//
//	site - creation time (Unix ms) - sequence - check
//	default-1712345678901-42-9c1f
//
// The check is the low 16 bits of CRC-32C over everything before it, as four hex
// digits: it catches a mistyped or cut key, it does not authenticate.
type Key struct {
	Site   string
	Millis int64 // 0 to MaxKeyMillis
	Seq    uint64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// String formats the key with its check.
func (k Key) String() string {
	b := make([]byte, 0, MaxKeyLen)
	b = append(b, k.Site...)
	b = append(b, '-')
	b = strconv.AppendInt(b, k.Millis, 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, k.Seq, 10)
	sum := crc32.Checksum(b, castagnoli)
	b = append(b, '-')
	b = append(b, hex.EncodeToString([]byte{byte(sum >> 8), byte(sum)})...)
	return string(b)
}

// ParseKey reads a key and verifies its check. A site may itself contain dashes,
// so the parts are taken from the right.
func ParseKey(s string) (Key, error) {
	bad := func(why string) (Key, error) {
		return Key{}, fmt.Errorf("instruction id %q: %s; the form is site-milliseconds-sequence-check", clip(s), why)
	}
	if len(s) > MaxKeyLen {
		return bad(fmt.Sprintf("longer than %d bytes", MaxKeyLen))
	}
	c := strings.LastIndexByte(s, '-')
	if c < 0 {
		return bad("no check")
	}
	q := strings.LastIndexByte(s[:c], '-')
	if q < 0 {
		return bad("no sequence")
	}
	t := strings.LastIndexByte(s[:q], '-')
	if t < 0 {
		return bad("no time")
	}
	k := Key{Site: s[:t]}
	if err := CheckSite(k.Site); err != nil {
		return bad(err.Error())
	}
	var err error
	if k.Millis, err = strconv.ParseInt(s[t+1:q], 10, 64); err != nil || k.Millis < 0 || k.Millis > MaxKeyMillis {
		return bad("the time is not a number of milliseconds")
	}
	if k.Seq, err = strconv.ParseUint(s[q+1:c], 10, 64); err != nil {
		return bad("the sequence is not a number")
	}
	if k.String() != s {
		return bad("the check does not match (mistyped or cut?)")
	}
	return k, nil
}

// Token fences one attempt (A5): reports that carry an older one are refused.
// Seq rises strictly within a shard (a gateway's log); Rand tells apart two logs
// that were given the same numbers, for example after an old backup was restored.
type Token struct {
	_     struct{} `cbor:",toarray"`
	Shard uint16
	Seq   uint64
	Rand  uint32
}

// IsZero reports whether no token was given.
func (t Token) IsZero() bool { return t == Token{} }

// String is shard.sequence.random, for example 1.4711.9f3ab2c1.
func (t Token) String() string {
	b := make([]byte, 0, 36)
	b = strconv.AppendUint(b, uint64(t.Shard), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, t.Seq, 10)
	b = append(b, '.')
	r := [4]byte{byte(t.Rand >> 24), byte(t.Rand >> 16), byte(t.Rand >> 8), byte(t.Rand)}
	return string(hex.AppendEncode(b, r[:]))
}

// ParseToken reads what String wrote and accepts no other spelling.
func ParseToken(s string) (Token, error) {
	bad := fmt.Errorf("token %q is not shard.sequence.random", clip(s))
	p := strings.Split(s, ".")
	if len(p) != 3 {
		return Token{}, bad
	}
	shard, err1 := strconv.ParseUint(p[0], 10, 16)
	seq, err2 := strconv.ParseUint(p[1], 10, 64)
	rnd, err3 := strconv.ParseUint(p[2], 16, 32)
	t := Token{Shard: uint16(shard), Seq: seq, Rand: uint32(rnd)}
	if err1 != nil || err2 != nil || err3 != nil || t.String() != s {
		return Token{}, bad
	}
	return t, nil
}

// EventID is node-number (B7), the name of an event for people and logs.
func EventID(node string, number uint64) string {
	return node + "-" + strconv.FormatUint(number, 10)
}

// ParseEventID splits what EventID joined.
func ParseEventID(s string) (node string, number uint64, err error) {
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return "", 0, fmt.Errorf("event id %q is not node-number", clip(s))
	}
	node = s[:i]
	if err := CheckNode(node); err != nil {
		return "", 0, fmt.Errorf("event id: %w", err)
	}
	number, err = strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil || EventID(node, number) != s {
		return "", 0, fmt.Errorf("event id %q is not node-number", clip(s))
	}
	return node, number, nil
}

// Trace is the id that joins everything that belongs to one submission (B5). It
// is written like a UUID.
type Trace [16]byte

// UnmarshalCBOR implements cbor.Unmarshaler: a string of 16 bytes with its length
// in the shortest form, or null for none. (Left alone, the decoder would pad a
// short string, cut a long one, and take a list of numbers.)
func (t *Trace) UnmarshalCBOR(b []byte) error {
	if len(b) == 1 && b[0] == cborNull {
		*t = Trace{}
		return nil
	}
	const byteString16 = 0x50
	if len(b) != 1+len(t) || b[0] != byteString16 {
		return fmt.Errorf("a trace id is a string of %d bytes", len(t))
	}
	copy(t[:], b[1:])
	return nil
}

// IsZero reports whether no trace was given.
func (t Trace) IsZero() bool { return t == Trace{} }

// NewTrace makes a version 4 UUID (RFC 9562) of two random words.
func NewTrace(hi, lo uint64) Trace {
	var t Trace
	for i := range 8 {
		t[i] = byte(hi >> (56 - 8*i))
		t[8+i] = byte(lo >> (56 - 8*i))
	}
	t[6] = t[6]&0x0f | 0x40
	t[8] = t[8]&0x3f | 0x80
	return t
}

// String is the usual 8-4-4-4-12 form.
func (t Trace) String() string {
	h := hex.EncodeToString(t[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseTrace reads the 8-4-4-4-12 form, in either case.
func ParseTrace(s string) (Trace, error) {
	var t Trace
	bad := fmt.Errorf("trace id %q is not a UUID", clip(s))
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return t, bad
	}
	if _, err := hex.Decode(t[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:])); err != nil {
		return Trace{}, bad
	}
	return t, nil
}

var shortEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Short is the id of a node on the narrowband topics: 30 bits of the SHA-256 of
// its name, six characters (no i, l, o, u, so that it can be read aloud). Two
// nodes of one site with the same short id are one in a billion a pair; the
// gateway refuses the second.
func Short(node string) string {
	sum := sha256.Sum256([]byte(node))
	return shortEncoding.EncodeToString(sum[:4])[:ShortLen]
}

// CheckShort reports whether s may be a short node id.
func CheckShort(s string) error {
	if len(s) != ShortLen {
		return fmt.Errorf("short node id %q is not %d characters long", clip(s), ShortLen)
	}
	if strings.Trim(s, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
		return fmt.Errorf("short node id %q has characters outside its alphabet", s)
	}
	return nil
}
