package dirstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// lockShards is how many locks all keys share: writers of different keys wait
// for each other only for one rename and one folder fsync, in 1 of 64 cases.
const lockShards = 64

// keyLocks orders the writers of one key, in this process and in others that
// have the same folder open. A flock belongs to an open file, so that two
// Stores in one process exclude each other too.
type keyLocks struct {
	dir    string
	shards [lockShards]lockShard
}

type lockShard struct {
	turn chan struct{} // holds one token; who takes it may touch file
	once sync.Once
	file *os.File
	err  error
}

func newKeyLocks(dir string) *keyLocks {
	l := &keyLocks{dir: dir}
	for i := range l.shards {
		l.shards[i].turn = make(chan struct{}, 1)
	}
	return l
}

// lock waits for key's lock and gives its release.
func (l *keyLocks) lock(ctx context.Context, key string) (func(), error) {
	h := fnv.New32a()
	h.Write([]byte(key))
	i := h.Sum32() % lockShards
	s := &l.shards[i]
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	s.once.Do(func() {
		s.file, s.err = os.OpenFile(filepath.Join(l.dir, fmt.Sprintf("%02d", i)), os.O_RDWR|os.O_CREATE, 0o600)
	})
	if s.err != nil {
		<-s.turn
		return nil, s.err
	}
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := flock(s.file, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() {
				flock(s.file, syscall.LOCK_UN) // cannot fail on an open file
				<-s.turn
			}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			<-s.turn
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			<-s.turn
			return nil, fault.As(fault.Unavailable, context.Cause(ctx))
		}
	}
}

func (l *keyLocks) close() {
	for i := range l.shards {
		if f := l.shards[i].file; f != nil {
			f.Close()
		}
	}
}

// flock calls flock(2), again when a signal interrupts it.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}

// lockFile is the file that LockDir locks; it holds the pid of its holder.
const lockFile = "lock"

// LockDir makes this process the only owner of the folder at path, which it
// creates (0700) if need be. Where another process owns it, the error says
// which. The lock goes with release or with the process, however that ends.
func LockDir(path string) (release func(), err error) {
	defer fault.Wrap(&err, "lock(%s)", path)
	if err := mkdirSync(path); err != nil {
		return nil, ioFault(path, err)
	}
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, ioFault(path, err)
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ioFault(path, err)
		}
		const hint = "stop it, or give another folder with --dir"
		if pid := holder(f); pid > 0 {
			return nil, fault.At(fault.Unavailable, path, hint, "another `mem up` (pid %d) uses this folder", pid)
		}
		return nil, fault.At(fault.Unavailable, path, hint, "another `mem up` uses this folder")
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, ioFault(path, err)
	}
	return sync.OnceFunc(func() {
		f.Truncate(0) // so that nobody reads the pid of a process that is gone
		f.Close()
	}), nil
}

// holder is the pid in a lock file, 0 when unknown: its holder may not have
// written it yet.
func holder(f *os.File) int {
	buf := make([]byte, 20) // an int64 in decimal
	n, _ := f.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}
