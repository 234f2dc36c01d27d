package extractive

import "regexp"

type matcher struct{ re *regexp.Regexp }

func (m matcher) match(s string) bool { return m.re.MatchString(s) }

func fold(p string) matcher  { return matcher{regexp.MustCompile("(?i)" + p)} }
func exact(p string) matcher { return matcher{regexp.MustCompile(p)} }
