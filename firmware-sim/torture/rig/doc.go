// Package rig runs the real programs as processes, so that trials can be hard on
// them: a gateway and agents that are started, killed and started again, lines
// that go dead (Proxy), networks that lose packets and are cut (Network), and a
// client that trusts nothing but the PUBACK that it read (Client).
//
// The rules: whatever is started here is ended by Close; everything waits with a
// limit; all traffic stays on the loopback interface or in network namespaces of
// our own.
//
//	bin, err := rig.Build(ctx, dir)
//	s, err := rig.NewSite(ctx, bin, dir, rig.Options{})
//	defer s.Close()
//	agent, err := s.StartAgent("pump-1", s.Door())
//	agent.Kill()
package rig
