package gate

// mostKept bounds the bytes of an answer that is cached: with replyCache of them, no
// more than 256 MiB. A gate's reply with its log-probabilities has some 1,100 bytes a
// token, so that one of 200 fits; a longer one is asked again where its step is lost.
const mostKept = 256 << 10

// kept reports whether an answer is small enough for the cache.
func (a *answer) kept() bool {
	return len(a.raw)+len(a.reply.Content)+len(a.reply.Reasoning) <= mostKept
}
