package lab

import (
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/lab/disk"
)

// The controls: what must be found, is it found? Each is a way to lose what was
// acknowledged, and the tests above would not be worth their time if they passed
// with it.

// controlCuts is how many cuts a control may take until it is caught.
const controlCuts = 3

func TestControlAgentWithoutSync(t *testing.T) {
	k := lab(t)
	caught(t, agentPowerCuts(t, k, k.unsyncedAgent(t), disk.Honest, controlCuts).faults())
}

func TestControlAgentOnLyingDisk(t *testing.T) {
	k := lab(t)
	caught(t, agentPowerCuts(t, k, k.agentFile("arm64"), disk.Lying, controlCuts).faults())
}

func TestControlGatewayWithoutSync(t *testing.T) {
	k := lab(t)
	r := gatewayPowerCuts(t, k, k.unsyncedGateway(t), disk.Honest, controlCuts)
	caught(t, r.faults())
}

func TestControlGatewayOnLyingDisk(t *testing.T) {
	k := lab(t)
	r := gatewayPowerCuts(t, k, k.gateway, disk.Lying, controlCuts)
	caught(t, r.faults())
}

func caught(t *testing.T, faults []string) {
	t.Helper()
	if len(faults) == 0 {
		t.Fatal("nothing was found")
	}
	for _, f := range faults {
		t.Logf("caught: %s", f)
	}
}
