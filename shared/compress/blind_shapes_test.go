package compress_test

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/compress"
)

// blindShapes are more shapes of JSON, code and prose.
func blindShapes() []blind {
	const j, jl, c, t = compress.JSON, compress.JSONL, compress.Code, compress.Text
	goMethods := "// Package pool keeps connections.\npackage pool\n\nimport (\n\t\"context\"\n\t\"sync\"\n)\n\n// Pool keeps them.\ntype Pool[T any] struct {\n\tmu sync.Mutex\n\tfree []T\n}\n\nvar ErrClosed = errors.New(\"closed\")\n" + times(20, func(i int) string {
		return sp("\n// Take%d waits for one.\nfunc (p *Pool[T]) Take%d(ctx context.Context, opts ...func(*Pool[T])) (v T, err error) {\n\tp.mu.Lock()\n\tdefer p.mu.Unlock()\n\ts := `raw } {`\n\tr := '{'\n\tfor range %d {\n\t\tselect {\n\t\tcase <-ctx.Done():\n\t\t\treturn v, ctx.Err()\n\t\tdefault:\n\t\t}\n\t}\n\t_, _ = s, r\n\treturn v, nil\n}\n", i, i, i)
	})
	python := "\"\"\"Carts.\"\"\"\nfrom __future__ import annotations\n\nimport asyncio\nimport dataclasses as dc\n\n__all__ = [\"Cart\"]\n\n\n@dc.dataclass(frozen=True)\nclass Cart:\n    items: list[str] = dc.field(default_factory=list)\n    total: float = 0.0\n" + times(18, func(i int) string {
		return sp("\n    @property\n    async def step_%d(\n        self,\n        a: int,\n        *,\n        b: str = \"}:\",\n    ) -> dict[str, int]:\n        \"\"\"Step %d.\n\n        Longer: def not_one(): pass\n        \"\"\"\n        text = f\"\"\"\n    def neither(self):\n        \"\"\"\n        if a > %d:\n            async with asyncio.timeout(3):\n                return {text: a}\n        return {}\n", i, i, i)
	}) + "\n\nif __name__ == \"__main__\":\n    asyncio.run(main())\n"
	tsx := "import React, { useState } from 'react';\nimport type { Item } from './types';\n\nexport type Props = { items: Item[]; onPay: (n: number) => void };\n" + times(16, func(i int) string {
		return sp("\nexport const Cart%d: React.FC<Props> = ({ items, onPay }) => {\n  const [n, setN] = useState<number>(0);\n  const label = `pay ${n} of ${items.length}`;\n  // it's a comment with an apostrophe {\n  return (\n    <div className=\"cart\">\n      {items.map((i) => (\n        <Row key={i.id} item={i} />\n      ))}\n      <button onClick={() => { setN(n + %d); onPay(n); }}>Don't pay</button>\n    </div>\n  );\n};\n", i, i)
	})
	js := "'use strict';\nconst fs = require('fs');\n\nclass Cart {\n  #items = [];\n" + times(16, func(i int) string {
		return sp("\n  static async step%d({ a, b = {} }, ...rest) {\n    const re = /\\/[^/}]+\\{/;\n    if (a / 2 > b) {\n      return rest.map(function (x) { return x / %d; });\n    }\n    return re.test(`}${a}`);\n  }\n", i, i+1)
	}) + "}\n\nmodule.exports = { Cart };\n"
	cpp := "#include <vector>\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n\nnamespace shop {\n\ntemplate <typename T>\nclass Cart {\n public:\n  explicit Cart(int n);\n" + times(16, func(i int) string {
		return sp("\n  std::vector<T> step%d(const T& a, int b = %d) const noexcept {\n    auto s = R\"x(} {)x\";\n    char c = '}';\n    for (int i = 0; i < b; ++i) {\n      if (s[i] == c) {\n        return {a};\n      }\n    }\n    return {};\n  }\n", i, i)
	}) + "\n private:\n  int n_ = 1'000'000;\n};\n\n}  // namespace shop\n"
	return []blind{
		{"shape: arrays by day", "days.json", "{" + strings.TrimSuffix(times(4, func(d int) string {
			return sp(`"2026-03-0%d":%s,`, d+1, rowsOf(120, func(i int) string {
				return sp(`{"job":"backup-%d","size_mb":%s,"ok":true}`, i%5, at(i, 66+d, sp("%d", 1-d), sp("%d", 500+i%9)))
			}))
		}), ",") + "}", []string{`"2026-03-01"`, `"2026-03-04"`, `"size_mb":1,`, `"size_mb":-2,`}, .35, j},
		{"shape: lines within orders", "orders.json", sp(`{"orders":%s}`, rowsOf(60, func(o int) string {
			return sp(`{"order":%d,"customer":"c%d","lines":%s}`, 4000+o, o, rowsOf(25, func(i int) string {
				return sp(`{"sku":"A-%d","qty":1,"state":"%s"}`, i, map[bool]string{true: "backordered", false: "shipped"}[o == 41 && i == 13])
			}))
		})), []string{"backordered", `"order":4041`}, .35, j},
		{"shape: a field that is missing once", "files.json", rowsOf(150, func(i int) string {
			return sp(`{"path":"/data/part-%d.parquet","rows":%d%s}`, i, 1000+i%7, at(i, 97, "", `,"checksum":"ok"`))
		}), []string{"part-97.parquet"}, .35, j},
		{"shape: null once", "owners.json", rowsOf(150, func(i int) string {
			return sp(`{"service":"svc-%d","owner":%s,"tier":2}`, i, at(i, 97, "null", `"team-a"`))
		}), []string{`"svc-97","owner":null`}, .35, j},
		{"shape: a word among numbers", "counts.json", rowsOf(150, func(i int) string {
			return sp(`{"sensor":"s%d","count":%s}`, i, at(i, 97, `"n/a"`, sp("%d", 20+i%30)))
		}), []string{`"n/a"`}, .35, j},
		{"shape: lines of a log as strings", "lines.json", sp(`{"lines":%s}`, rowsOf(400, func(i int) string {
			return at(i, 222, `"08:03:42 ERROR ledger: sum differs by 3 cents"`, sp(`"%s INFO ledger: row %d added"`, clock(i), i))
		})), []string{"sum differs by 3 cents"}, .3, j},
		{"shape: alike but one", "same.json", rowsOf(250, func(i int) string {
			return at(i, 177, `{"check":"disk","state":"ok","text":"free: 3 % of /var"}`, `{"check":"disk","state":"ok","text":"free: 41 % of /var"}`)
		}), []string{"free: 3 % of /var"}, .3, j},
		{"shape: deep", "deep.json", sp(`{"a":{"b":[{"c":{"rows":%s}}]}}`, rowsOf(200, func(i int) string {
			return sp(`{"n":%d,"é":"\u00e9","state":"%s"}`, i, at(i, 120, "orphaned", "linked"))
		})), []string{"orphaned", `"é":"\u00e9"`}, .3, j},
		{"shape: events of a cloud", "cw.json", sp(`{"events":%s,"nextForwardToken":"f/3"}`, rowsOf(150, func(i int) string {
			return sp(`{"timestamp":%d,"message":"%s","ingestionTime":%d}`, 1772600000000+i*1000, at(i, 88, `[ERROR] KeyError: 'totl'\nTraceback (most recent call last):\n  File \"/var/task/app.py\", line 41`, sp(`REPORT RequestId: %08x Duration: %d.12 ms Memory Size: 128 MB`, i*7919, 20+i%9)), 1772600000900+i*1000)
		})), []string{"KeyError: 'totl'", "line 41", "f/3"}, .35, j},
		{"shape: sarif", "x.sarif", sp(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":%s}]}`, rowsOf(120, func(i int) string {
			return sp(`{"ruleId":"R%d","level":"%s","message":{"text":"%s"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"src/%s.c"},"region":{"startLine":%d}}}]}`, i%4, at(i, 77, "error", "note"), at(i, 77, "buffer of 8 bytes is written at 12", "line is long"), name(i), i)
		})), []string{"buffer of 8 bytes is written at 12", `"startLine":77`}, .35, j},
		{"shape: eslint", "eslint.json", rowsOf(90, func(i int) string {
			return sp(`{"filePath":"/w/src/%s%d.ts","messages":%s,"errorCount":%s,"warningCount":0,"usedDeprecatedRules":[]}`, name(i), i, at(i, 55, `[{"ruleId":"no-undef","severity":2,"message":"'totl' is not defined.","line":41,"column":9}]`, "[]"), at(i, 55, "1", "0"))
		}), []string{"'totl' is not defined.", "no-undef"}, .35, j},
		{"shape: levels as numbers", "bunyan.log", times(200, func(i int) string {
			return sp(`{"name":"shop","pid":31,"level":%s,"msg":"%s","time":"2026-03-04T%sZ","v":0}`+"\n", at(i, 133, "50", "30"), at(i, 133, "cart is gone", "cart stored"), clock(i))
		}), []string{"cart is gone"}, .3, jl},
		{"shape: what containers print", "docker.jsonl", times(200, func(i int) string {
			return sp(`{"log":"%s\n","stream":"%s","time":"2026-03-04T%sZ"}`+"\n", at(i, 133, "panic: assignment to entry in nil map", sp("served /items/%d in %dms", i, i%9)), at(i, 133, "stderr", "stdout"), clock(i))
		}), []string{"panic: assignment to entry in nil map"}, .3, jl},
		{"shape: the journal", "journal.json", times(200, func(i int) string {
			return sp(`{"__CURSOR":"s=%08x","PRIORITY":"%s","_COMM":"portd","MESSAGE":"%s"}`+"\n", i*7919, at(i, 133, "3", "6"), at(i, 133, "eth7 carrier off", sp("eth%d rx %d", i%8, i*31)))
		}), []string{"eth7 carrier off"}, .35, jl},
		{"shape: values over many lines", "many.json", times(60, func(i int) string {
			return sp("{\n  \"step\": %d,\n  \"result\": \"%s\"\n}\n", i, at(i, 33, "skewed", "fine"))
		}), []string{"skewed"}, .5, jl},
		{"code: Go with generics", "pool.go", goMethods, []string{"type Pool[T any] struct", "var ErrClosed = errors.New", "func (p *Pool[T]) Take19(ctx context.Context, opts ...func(*Pool[T])) (v T, err error)", "// Take7 waits for one."}, .6, c},
		{"code: Python with long heads", "cart.py", python, []string{"from __future__ import annotations", "__all__ = [\"Cart\"]", "@dc.dataclass(frozen=True)", "items: list[str]", "async def step_17(", ") -> dict[str, int]:", "if __name__ == \"__main__\":"}, .75, c},
		{"code: React", "Cart.tsx", tsx, []string{"import type { Item } from './types';", "export type Props = { items: Item[]; onPay: (n: number) => void };", "export const Cart15: React.FC<Props> = ({ items, onPay }) =>"}, .6, c},
		{"code: JavaScript", "cart.js", js, []string{"'use strict';", "class Cart {", "#items = [];", "static async step15({ a, b = {} }, ...rest)", "module.exports = { Cart };"}, .65, c},
		{"code: C++", "cart.hpp", cpp, []string{"#define MAX(a, b)", "template <typename T>", "explicit Cart(int n);", "step15(const T& a, int b = 15) const noexcept", "int n_ = 1'000'000;"}, .65, c},
		{"text: Japanese", "jp.md", "# 手順\n\n" + times(25, func(i int) string {
			return sp("手順%dでは鍵%dを使います。この文書の内容は予告なく変更されることがありますのでご了承ください。", i, i+40)
		}) + "\n", []string{"手順17では鍵57を使います。", "予告なく変更"}, .8, t},
		{"text: minutes", "minutes.md", "# Minutes\n\n" + times(20, func(i int) string {
			return sp("- %s: item %d stays open, unless `flag_%d` is set by Friday.\n", name(i), i, i)
		}) + times(15, func(i int) string {
			return sp("\nIt should be noted that nothing was decided about room %d. Everybody was asked to read the paper before the next meeting takes place.\n", i)
		}), []string{"item 19 stays open, unless `flag_19` is set", "nothing was decided about room 14", "asked to read the paper"}, 1, t},
		{"text: a table", "t.md", "| a | b |\n|---|---|\n" + times(60, func(i int) string { return sp("| row %d | the same words |\n", i) }), []string{"| row 33 |", "| row 59 |"}, 1, t},
		{"text: tabs", "rows.tsv", "id\tname\tstate\n" + times(200, func(i int) string { return sp("%d\t%s\t%s\n", i, name(i), at(i, 99, "failed", "sent")) }), []string{"id\tname\tstate", "99\t", "failed"}, 1, t},
	}
}
