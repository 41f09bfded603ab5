//go:build mutant_expiry_only_at_gateway

package mutant

// Active is the fault that was planted.
const Active = ExpiryOnlyAtGateway
