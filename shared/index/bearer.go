package index

import "context"

type bearerKey struct{}

// WithBearer carries the caller's own token to a store that decides by it what is seen.
func WithBearer(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, bearerKey{}, token)
}

// Bearer is the caller's token; "" where there is none.
func Bearer(ctx context.Context) string {
	token, _ := ctx.Value(bearerKey{}).(string)
	return token
}
