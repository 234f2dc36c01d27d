package extractpolicy

import (
	"sync"

	"github.com/mneme-ai/mneme/shared/memory"
)

// memo remembers values that are a function of their key. It keeps at least
// the last half and at most size of them: two generations, the elder dropped
// when the younger is full.
type memo[V any] struct {
	half int

	mu         sync.Mutex
	young, old map[memory.SHA]V
}

func newMemo[V any](size int) *memo[V] {
	return &memo[V]{half: size / 2, young: map[memory.SHA]V{}}
}

func (m *memo[V]) get(key memory.SHA) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.young[key]
	if !ok {
		if v, ok = m.old[key]; ok {
			m.store(key, v)
		}
	}
	return v, ok
}

func (m *memo[V]) put(key memory.SHA, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(key, v)
}

func (m *memo[V]) store(key memory.SHA, v V) {
	if len(m.young) >= m.half {
		m.old, m.young = m.young, make(map[memory.SHA]V, m.half)
	}
	m.young[key] = v
}
