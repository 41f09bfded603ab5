package gateway

import (
	"errors"

	"github.com/apollo-11/apollo11/broker"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// warnNode is the code of the engine's warnings: they all speak of a node.
const warnNode scada.WarningCode = "node"

// verdict translates the engine's answer for the broker.
func verdict(topics wire.Topics, taskID string, r engine.Reply, warnings []scada.Warning) (broker.Verdict, error) {
	if a := r.Accepted; a != nil {
		for _, w := range a.Warnings {
			warnings = append(warnings, scada.Warning{Code: warnNode, Problem: w})
		}
		body, err := scada.Marshal(scada.Reply{OK: true, TaskID: a.TaskID, TraceID: a.Trace.String(),
			StatusTopic: topics.TaskStatus(a.TaskID), Warnings: warnings})
		return broker.Verdict{Reason: broker.Accepted, Body: body}, err
	}
	if r.Refused == nil {
		return broker.Verdict{}, errors.New("bug: the engine's answer is empty")
	}
	v := broker.Verdict{Reason: broker.Invalid, Text: r.Refused.Error()}
	code := scada.CodeBadValue
	switch r.Refused.Kind {
	case engine.RefusedConflict:
		v.Reason, code = broker.Conflict, scada.CodeConflict
	case engine.RefusedHeld:
		v.Reason, code = broker.Held, scada.CodeHeld
	case engine.RefusedCapacity:
		v.Reason, code = broker.Quota, scada.CodeFull
	case engine.RefusedNoNode, engine.RefusedNotFound:
		code = scada.CodeUnknownNode
	}
	var err error
	v.Body, err = scada.Marshal(scada.Refused(&scada.Error{Code: code, Problem: r.Refused.Text, Hint: r.Refused.Hint, TaskID: taskID}))
	return v, err
}

// faulty is the verdict on a document that cannot be read.
func faulty(fault error) (broker.Verdict, error) {
	body, err := scada.Marshal(scada.Refused(fault))
	return broker.Verdict{Reason: broker.Invalid, Text: fault.Error(), Body: body}, err
}

// alarmView is an alarm for its topic.
func alarmView(a engine.Alarm) scada.Alarm {
	v := scada.Alarm{Alarm: a.Kind, State: scada.AlarmCleared, Severity: scada.SeverityWarning, Node: a.Subject, Detail: a.Text}
	if a.Raised {
		v.State = scada.AlarmRaised
	}
	switch a.Urgency() {
	case engine.UrgencyNone:
		v.Severity = scada.SeverityInfo
	case engine.UrgencyNow:
		v.Severity = scada.SeverityCritical
	}
	if k, err := wire.ParseKey(a.Subject); err == nil {
		v.Node, v.Instruction = "", k.String()
	}
	return v.At(a.At, a.At)
}

// nodeView is a node for its topic, at now in Unix ms.
func nodeView(n engine.NodeState, now int64) scada.NodeView {
	return scada.NewNodeView(n.Node, scada.PresenceOf(n), now)
}
