package fieldagent

import (
	"errors"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
)

// openJournal opens the journal, which must not keep a board from working because
// a power cut or a worn card has ruined it. A damaged one, and one that contradicts
// itself, is set aside and the agent begins with an empty one, under a new
// incarnation: the gateway then settles what it had handed out, and sends nothing
// again under an old token. One of a newer agent is left alone.
//
// What is still readable in the damaged file is not used. With a record missing in
// between it may look as if something had not run that did. The file is kept for
// people.
func (a *Agent) openJournal(fsys journal.FS) (*journal.Journal, [][]byte, error) {
	o := journal.Options{OnTorn: func(t journal.Torn) { a.log.Warn("journal repaired", "detail", t.String()) }}
	j, records, err := journal.Open(fsys, a.cfg.Data, o)
	aside := journal.SetAside
	if err == nil {
		if err = executor.Sense(records); err == nil {
			return j, records, nil
		}
		aside = journal.Discard
		err = errors.Join(err, j.Close())
	}
	if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, executor.ErrNonsense) {
		return nil, nil, err
	}
	q, failed := aside(fsys, a.cfg.Data, o)
	if failed != nil {
		return nil, nil, errors.Join(err, failed)
	}
	a.log.Error("the journal is damaged: the agent has forgotten what it did and begins anew; the gateway settles what was open",
		"err", err, "kept_as", q.File, "readable_records", q.Records, "damaged_bytes", q.Lost)
	return journal.Open(fsys, a.cfg.Data, o)
}
