package wire

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Secret is a credential: it prints as [hidden] wherever it is logged.
type Secret string

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// String hides the secret; Reveal gives it.
func (Secret) String() string { return "[hidden]" }

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

// Credentials are written at the first start into <dir>/credentials (0600), a
// line NAME=value each.
type Credentials struct {
	Token       Secret // API
	HookToken   Secret // POST /hooks/object/<token>
	S3AccessKey Secret // may read and write the bucket transcripts, nothing else
	S3SecretKey Secret
	TenantKey   Secret // hex; keys redaction marks and seals
}

const credentialsFile = "credentials"

func (c *Credentials) fields() map[string]*Secret {
	return map[string]*Secret{
		"MNEME_TOKEN": &c.Token, "MNEME_HOOK_TOKEN": &c.HookToken,
		"MNEME_S3_ACCESS_KEY": &c.S3AccessKey, "MNEME_S3_SECRET_KEY": &c.S3SecretKey,
		"MNEME_TENANT_KEY": &c.TenantKey,
	}
}

var credentialOrder = []string{"MNEME_TOKEN", "MNEME_HOOK_TOKEN", "MNEME_S3_ACCESS_KEY", "MNEME_S3_SECRET_KEY", "MNEME_TENANT_KEY"}

// ReadCredentials reads the file of a data folder.
func ReadCredentials(dir string) (c Credentials, err error) {
	path := filepath.Join(dir, credentialsFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fault.At(fault.NotFound, path, "start `mem up` on this folder first, or set MNEME_URL and MNEME_TOKEN", "no credentials")
	}
	if err != nil {
		return c, fault.As(fault.Unavailable, err)
	}
	defer f.Close()
	fields := c.fields()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, value, _ := strings.Cut(strings.TrimSpace(sc.Text()), "=")
		if p := fields[name]; p != nil {
			*p = Secret(value)
		}
	}
	for _, n := range credentialOrder {
		if *fields[n] == "" {
			return c, fault.At(fault.Corrupt, path, "restore the file, or remove it to make new credentials (the tenant key is then lost: set MNEME_TENANT_KEY)", "%s is missing", n)
		}
	}
	return c, nil
}

// ensureCredentials reads the folder's credentials or makes them. A tenant key
// from the environment (MNEME_TENANT_KEY) is used when the file is made, and
// must equal the file's later: with another key old redaction marks would name
// other secrets.
func ensureCredentials(dir, tenantKey string) (Credentials, error) {
	c, err := ReadCredentials(dir)
	switch {
	case err == nil:
		if tenantKey != "" && tenantKey != c.TenantKey.Reveal() {
			return c, fault.At(fault.Invalid, "MNEME_TENANT_KEY", "unset it, or use another folder", "differs from the key this folder was made with")
		}
		// A copy of the folder may have let others read it.
		return c, fault.As(fault.Unavailable, os.Chmod(filepath.Join(dir, credentialsFile), 0o600))
	case !fault.Is(err, fault.NotFound):
		return c, err
	}
	if _, err := os.Stat(filepath.Join(dir, bucketsDir, LogBucket, "log")); err == nil && tenantKey == "" {
		return c, fault.At(fault.Corrupt, filepath.Join(dir, credentialsFile), "restore the file, or set MNEME_TENANT_KEY to the key it held (any other key makes marks and seals of new text that differ from the old)", "the folder holds a log, and its credentials are gone")
	}
	if tenantKey != "" && len(tenantKey) < 16 {
		return c, fault.At(fault.Invalid, "MNEME_TENANT_KEY", "use at least 16 characters", "too short")
	}
	if strings.TrimSpace(tenantKey) != tenantKey || strings.ContainsAny(tenantKey, "\r\n") {
		return c, fault.At(fault.Invalid, "MNEME_TENANT_KEY", "use one line without blanks around it", "would not be read back as it is")
	}
	c = Credentials{
		Token: "mneme_" + randomHex(24), HookToken: randomHex(24),
		S3AccessKey: "MNEME" + Secret(strings.ToUpper(string(randomHex(8)))), S3SecretKey: randomHex(24), TenantKey: randomHex(32),
	}
	if tenantKey != "" {
		c.TenantKey = Secret(tenantKey)
	}
	var b strings.Builder
	fields := c.fields()
	for _, n := range credentialOrder {
		fmt.Fprintf(&b, "%s=%s\n", n, fields[n].Reveal())
	}
	return c, writeFileSync(filepath.Join(dir, credentialsFile), []byte(b.String()), 0o600)
}

func randomHex(n int) Secret {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand crashes the program instead
	return Secret(hex.EncodeToString(b))
}

// writeFileSync replaces a file whole: temp file, sync, rename, sync of the
// folder. A power cut leaves the old file or the new one.
func writeFileSync(path string, data []byte, mode fs.FileMode) (err error) {
	defer fault.Wrap(&err, "write %s", filepath.Base(path))
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil {
		var d *os.File
		if d, err = os.Open(filepath.Dir(path)); err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
	}
	return fault.As(fault.Unavailable, err)
}
