package order

import "reflect"

// A Rule says which clauses are in force. The tag of each names its clause of
// the safety rule; "mend" stands before those that its wording lacked when this
// was written, and that the model asks for.
type Rule struct {
	Reserve          bool `rule:"1: numbers are reserved durably in blocks ahead"`
	RetryKeepsNumber bool `rule:"1: resends and retries keep the number"`
	RetryRenumbered  bool `rule:"1: an operator's retry gets a new number"`
	NumberWhenDue    bool `rule:"1: what is not due yet gets its number when it becomes due"`
	RecordLost       bool `rule:"1: a report on a lost record is entered as safe, record lost, never as log_restored"`

	KeyByLine    bool `rule:"2: both sides key by line"`
	Marks        bool `rule:"2: the board answers anything lower than its mark with superseded"`
	MarksWritten bool `rule:"2: the mark is journalled with the start"`
	EpochEnds    bool `rule:"2: what is of the older epoch and has not begun ends before anything of the new begins"`
	Believe      bool `rule:"2: superseded is believed only if the newer one is known"`
	RenumberSafe bool `rule:"2: on order_lost towards safe is renumbered and sent at once"`
	HelloFirst   bool `rule:"2: before the hello of this run only towards safe goes out"`
	HoldRestored bool `rule:"2: after a restore what waited away from safe is held for an operator"`
	HoldReplaced bool `rule:"2: and after a replaced journal"`

	NewerWaits bool `rule:"3: a newer command waits and supersedes by clause 5 only"`
	InOrder    bool `rule:"3: it is handed out once the older one is received in order or settled"`
	TwoPlaces  bool `rule:"3: while another line waits a line has two places in the window"`

	StuckBudget     bool `rule:"4: a stuck older one holds the line for order_wait at most"`
	KeepLine        bool `rule:"4: after a failure that may pass the board keeps the line for the retry"`
	KeepBounded     bool `rule:"4: no longer than order_wait"`
	UnknownHoldsNot bool `rule:"4: an unknown outcome never holds a line"`

	SafePasses           bool `rule:"5: at the gateway towards safe passes older work, hello, quiet"`
	SafeSlot             bool `rule:"5: a full queue of the board has a slot for it"`
	SafeDrivesFirst      bool `rule:"5: it drives first and the record follows"`
	Withdraw             bool `rule:"5: the gateway withdraws what is older at submission and never offers it again"`
	SupersedeSurvives    bool `rule:"5: its superseding survives its own refusal, expiry, cancel"`
	SaidAfterRecord      bool `rule:"5: the board says superseded only after that is in its journal"`
	Offered              bool `rule:"5: after a restart nothing begins that was not offered again"`
	OwnerChecks          bool `rule:"5: the owner of the pins checks the number at every drive"`
	EndsRunning          bool `rule:"5: what runs on the line ends at the safe level"`
	DrivenSettlesNothing bool `rule:"5: driven, unrecorded settles nothing"`
	NewerBegun           bool `rule:"5: a repeat drives again unless something newer has begun"`
	ResendSafe           bool `rule:"5: it is resent without a budget"`
	CompactNoRaise       bool `rule:"5: a compact frame raises no mark above what the primary path has told"`

	HeldAtGateway   bool `rule:"6: away from safe is refused held_safe at the gateway"`
	HeldAtBoard     bool `rule:"6: at agent and owner"`
	HoldInHello     bool `rule:"6: through restarts and epochs"`
	HoldEndsWaiting bool `rule:"6: what waits there without a number ends as well"`

	CutIsFinal     bool `rule:"8: what an owner's act or a restart has ended is never tried again by itself"`
	ActEndsEarlier bool `rule:"8: after LOCAL what was submitted before the gateway heard of it ends superseded"`
	LossIsState    bool `rule:"8: under loss nothing leaves safe on a line that falls with the gateway"`
	RenewalTTL     bool `rule:"8: a lease ends at most max_on after the gateway took its renewal"`

	LocalRefuses        bool `rule:"9: LOCAL refuses commands, off included"`
	RefusalsLeaveNoMark bool `rule:"9: refusals leave no mark"`
	RefusedEndsOlder    bool `rule:"9: a refused towards safe still ends older work"`

	CancelOvertakes bool `rule:"11: a cancel overtakes everything"`
	CancelOwnLease  bool `rule:"11: it ends its own living lease, not that of a newer one"`
	CancelBounded   bool `rule:"11: unanswered it holds at most order_wait"`

	Jump            bool `rule:"1, mend: when a restore is noticed the numbers jump beyond what the lost log can have given out"`
	LiftSafe        bool `rule:"2, mend: when a hello shows a restored log, every towards safe of this run, answered or not, is renumbered and sent"`
	LiftAway        bool `rule:"2, mend: and what was submitted away from safe in this run is renumbered too"`
	FreshEnds       bool `rule:"5, mend: towards safe that was sent before the hello of its run ends all of its line, whatever the numbers"`
	OfferedEver     bool `rule:"5, mend: and in any new session, with or without a restart"`
	OwedUntilBegun  bool `rule:"5, mend: a newer one ends what is owed only when it has begun"`
	CompactAsks     bool `rule:"5, mend: after a compact frame above what was told nothing away from safe begins until the gateway has answered"`
	OwnerRevokes    bool `rule:"5, mend: what an act or a compact frame ends the owner refuses by itself, not by its number"`
	RefusedMarks    bool `rule:"9, mend: a refused or expired towards safe leaves its mark for what is older and still on its way"`
	HoldOwed        bool `rule:"6, mend: a hold is owed until the board has confirmed it, whatever becomes of its towards safe"`
	ReleaseNumbered bool `rule:"6, mend: hold and release are numbered, the higher one counts"`
}

// Whole is the rule with every clause.
func Whole() Rule {
	var r Rule
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(true)
	}
	return r
}

// A Clause is one switch of the rule.
type Clause struct{ Name, Says string }

// Clauses lists the switches.
func Clauses() []Clause {
	var list []Clause
	t := reflect.TypeFor[Rule]()
	for i := range t.NumField() {
		list = append(list, Clause{t.Field(i).Name, t.Field(i).Tag.Get("rule")})
	}
	return list
}

// Leave leaves one clause out.
func Leave(r *Rule, name string) { reflect.ValueOf(r).Elem().FieldByName(name).SetBool(false) }

// Without is the whole rule but for some clauses.
func Without(list ...string) Rule {
	r := Whole()
	for _, name := range list {
		Leave(&r, name)
	}
	return r
}
