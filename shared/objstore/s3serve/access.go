package s3serve

import (
	"encoding/json"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3err"
)

// accounts is who may sign: the S3 key, as a user who owns transcripts, and the
// operator as the gateway's root. No account is ever made through the endpoint.
type accounts struct{ c Config }

var _ auth.IAMService = accounts{}

// GetUserAccount implements auth.IAMService.
func (a accounts) GetUserAccount(access string) (auth.Account, error) {
	switch access {
	case a.c.AccessKey:
		return auth.Account{Access: access, Secret: a.c.SecretKey, Role: auth.RoleUser}, nil
	case a.c.OperatorAccessKey:
		return auth.Account{Access: access, Secret: a.c.OperatorSecretKey, Role: auth.RoleAdmin}, nil
	}
	return auth.Account{}, auth.ErrNoSuchUser
}

// ResolveAccounts implements auth.IAMService.
func (a accounts) ResolveAccounts(keys []string) ([]string, error) {
	var missing []string
	for _, k := range keys {
		if _, err := a.GetUserAccount(k); err != nil {
			missing = append(missing, k)
		}
	}
	return missing, nil
}

func noAdmin() error { return s3err.GetAPIError(s3err.ErrAdminMethodNotSupported) }

// CreateAccount implements auth.IAMService.
func (accounts) CreateAccount(auth.Account) error { return noAdmin() }

// UpdateUserAccount implements auth.IAMService.
func (accounts) UpdateUserAccount(string, auth.MutableProps) error { return noAdmin() }

// DeleteUserAccount implements auth.IAMService.
func (accounts) DeleteUserAccount(string) error { return noAdmin() }

// ListUserAccounts implements auth.IAMService.
func (accounts) ListUserAccounts() ([]auth.Account, error) { return nil, noAdmin() }

// Shutdown implements auth.IAMService.
func (accounts) Shutdown() error { return nil }

// aclOf is the bucket's ACL as the gateway reads it: its owner alone.
func (s *store) aclOf(bucket string) ([]byte, error) {
	owner := s.config.OperatorAccessKey
	if bucket == BucketTranscripts {
		owner = s.config.AccessKey
	}
	return json.Marshal(auth.ACL{Owner: owner})
}
