package fieldagent

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// What the gateway sends ahead of its own record (wire.SafeNow). The owner of the pins
// drives it at once; the loop never sees it, for it settles nothing. If the instruction
// does not follow, the gateway has died before its record was on disk: then the next one
// must hear of what was driven.

// now takes a copy that goes ahead of its instruction.
func (u *urgent) now(m *wire.SafeNow) {
	s := slot{due: time.Now(), lines: m.Lines, order: m.Order, seq: m.Seq, token: m.Token, notAfter: m.NotAfter, ahead: true}
	if s.order == 0 {
		s.order = m.Seq
	}
	u.put(s)
}

// remember keeps what was driven until its instruction comes; of more than there is
// room for, the latest.
func (u *urgent) remember(st wire.State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ahead = slices.DeleteFunc(u.ahead, func(o wire.State) bool { return o.Token == st.Token })
	if len(u.ahead) == maxUrgent {
		u.ahead = slices.Delete(u.ahead, 0, 1)
	}
	u.ahead = append(u.ahead, st)
}

// came notes that the instruction of something has come.
func (u *urgent) came(t wire.Token) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ahead = slices.DeleteFunc(u.ahead, func(o wire.State) bool { return o.Token == t })
}

// welcome says to a gateway what was driven and never followed by its instruction.
func (u *urgent) welcome(m *wire.Welcome) {
	if m.Refused != "" || m.Rules < wire.RulesUrgent {
		return
	}
	u.mu.Lock()
	list := slices.Clone(u.ahead)
	u.mu.Unlock()
	for ; len(list) > 0; list = list[min(len(list), wire.MaxRefs):] {
		u.tell(list[:min(len(list), wire.MaxRefs)]...)
	}
}

// tell says on the primary path what was driven.
func (u *urgent) tell(list ...wire.State) {
	if b, err := wire.Encode(&wire.Report{States: list}); err == nil {
		u.primary(b)
	}
}
