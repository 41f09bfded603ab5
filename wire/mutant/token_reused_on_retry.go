//go:build mutant_token_reused_on_retry

package mutant

// Active is the fault that was planted.
const Active = TokenReusedOnRetry
