package wire

// IntentReboot boots the board again, once.
const IntentReboot = "reboot"

// Reboot are the arguments of reboot: none.
type Reboot struct{}

// Map implements Args.
func (a Reboot) Map() map[string]any { return nil }

var _ = declare[Reboot](IntentReboot, "boot the board again, once", Traits{Holds: HoldsBoard, Reboots: true})
