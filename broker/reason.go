package broker

import "github.com/mochi-mqtt/server/v2/packets"

// Reason is the outcome of a publish in the words of the gateway.
type Reason uint8

const (
	// Accepted: the publish is durable; it is acknowledged.
	Accepted Reason = iota + 1
	// Invalid: it can never be taken as it is. MQTT 5: 0x99. MQTT 3.1.1: it
	// is acknowledged, so that it is not sent for ever, and explained on the
	// reply topic.
	Invalid
	// NotAuthorized: this client may not do that. MQTT 5: 0x87. MQTT 3.1.1:
	// like Invalid.
	NotAuthorized
	// Conflict: the task id is taken by another content. MQTT 5: 0x97. MQTT
	// 3.1.1: like Invalid, because sending it again does not help.
	Conflict
	// Quota: the gateway is full and did not take it. MQTT 5: 0x97. MQTT
	// 3.1.1: no receipt and a disconnect, so that it is sent again.
	Quota
	// Unavailable: not taken for a passing reason of the gateway. MQTT 5:
	// 0x83. MQTT 3.1.1: like Quota.
	Unavailable
	// Retained: a command with the retain flag. MQTT 5: 0x83. MQTT 3.1.1: like
	// Invalid.
	Retained
	// BadTopic: no client may publish on such a topic. MQTT 5: 0x90. MQTT
	// 3.1.1: like Invalid.
	BadTopic
	// TooLarge: the packet is over the limit. MQTT 5: 0x99. MQTT 3.1.1: like
	// Invalid.
	TooLarge
	// Throttled: over the rate limit of the narrowband listener. MQTT 5: 0x97.
	// MQTT 3.1.1: acknowledged; the agent's own repetition is what counts.
	Throttled
	// Held: an output that it would move is held at its safe level. MQTT 5: 0x83.
	// MQTT 3.1.1: like Invalid.
	Held

	reasons = int(Held) + 1
)

// String returns the word used in JSON errors, logs and metrics.
func (r Reason) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case Invalid:
		return "invalid"
	case NotAuthorized:
		return "not_authorized"
	case Conflict:
		return "conflict"
	case Quota:
		return "quota"
	case Unavailable:
		return "unavailable"
	case Retained:
		return "retained"
	case BadTopic:
		return "bad_topic"
	case TooLarge:
		return "too_large"
	case Throttled:
		return "throttled"
	case Held:
		return "held_safe"
	}
	return "unknown"
}

// code returns the MQTT 5 reason code; all are legal in PUBACK and PUBREC.
func (r Reason) code() byte {
	switch r {
	case Accepted:
		return packets.CodeSuccess.Code
	case Invalid, TooLarge:
		return packets.ErrPayloadFormatInvalid.Code
	case NotAuthorized:
		return packets.ErrNotAuthorized.Code
	case Conflict, Quota, Throttled:
		return packets.ErrQuotaExceeded.Code
	case BadTopic:
		return packets.ErrTopicNameInvalid.Code
	}
	return packets.ErrImplementationSpecificError.Code
}

// repeatable says that the same publish may be taken later, so that an MQTT
// 3.1.1 sender must keep it.
func (r Reason) repeatable() bool {
	return r == Quota || r == Unavailable
}
