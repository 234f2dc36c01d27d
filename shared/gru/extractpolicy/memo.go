package extractpolicy

import "sync"

// memo remembers values that are a function of their key. It keeps at least
// the last half and at most size of them: two generations, the elder dropped
// when the younger is full.
type memo[K comparable, V any] struct {
	half int

	mu         sync.Mutex
	young, old map[K]V
}

func newMemo[K comparable, V any](size int) *memo[K, V] {
	return &memo[K, V]{half: size / 2, young: map[K]V{}}
}

func (m *memo[K, V]) get(key K) (V, bool) {
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

func (m *memo[K, V]) put(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(key, v)
}

func (m *memo[K, V]) store(key K, v V) {
	if len(m.young) >= m.half {
		m.old, m.young = m.young, make(map[K]V, m.half)
	}
	m.young[key] = v
}
