package compress_test

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/compress"
)

func blindJSON() []blind {
	const j = compress.JSON
	return []blind{
		{"json: pods of a cluster", "pods.json", sp(`{"apiVersion":"v1","kind":"List","items":%s,"metadata":{"resourceVersion":""}}`, rowsOf(120, func(i int) string {
			return sp(`{"metadata":{"name":"web-%d-%x","namespace":"shop","uid":"%08x-1111-4222-8333-%012x"},"spec":{"nodeName":"node-%d","containers":[{"name":"app","image":"shop/web:1.%d","resources":{"limits":{"memory":"256Mi"}}}]},"status":{"phase":"Running","containerStatuses":[{"name":"app","ready":%s,"restartCount":%d,"state":%s}]}}`,
				i, i*48271%65536, i*7919, i*104729, i%5, 4, at(i, 73, "false", "true"), map[bool]int{true: 17, false: 0}[i == 73],
				at(i, 73, `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m0s restarting failed container"}},"lastState":{"terminated":{"reason":"OOMKilled","exitCode":137}}`, sp(`{"running":{"startedAt":"2026-03-04T09:%02d:00Z"}}`, i%60)))
		})), []string{"web-73-", "OOMKilled", "137", "CrashLoopBackOff"}, .35, j},
		{"json: check runs", "runs.json", sp(`{"total_count":140,"check_runs":%s}`, rowsOf(140, func(i int) string {
			return sp(`{"id":%d,"name":"build (%s, %d)","status":"completed","conclusion":"%s","started_at":"2026-03-04T09:%02d:00Z","html_url":"https://ci.example/runs/%d"}`, 90000+i, name(i), i, at(i, 88, "timed_out", "success"), i%60, 90000+i)
		})), []string{"timed_out", `"total_count":140`, "90088"}, .35, j},
		{"json: numbers with a spike", "series.json", rowsOf(1000, func(i int) string { return at(i, 612, "98765.4", sp("%d.%d", 40+i%7, i%10)) }), []string{"98765.4"}, .3, j},
		{"json: cases within suites", "report.json", sp(`{"suites":%s}`, rowsOf(10, func(s int) string {
			return sp(`{"name":"suite %s","cases":%s}`, name(s), rowsOf(50, func(i int) string {
				if s == 6 && i == 31 {
					return `{"case":"rounds half to even","status":"failed","time":0.021,"message":"expected 12.34 but was 12.35"}`
				}
				return sp(`{"case":"case %d of %s","status":"passed","time":0.0%d}`, i, name(s), 10+i%30)
			}))
		})), []string{"rounds half to even", "expected 12.34 but was 12.35", "suite " + names[9*7%20]}, .35, j},
		{"json: columns and rows", "table.json", sp(`{"columns":["id","job","state","took_ms"],"rows":%s}`, rowsOf(200, func(i int) string {
			return sp(`[%d,"nightly-%s","%s",%d]`, i, name(i), at(i, 140, "aborted", "done"), 200+i%40)
		})), []string{`"took_ms"`, "aborted", "[140,"}, .35, j},
		{"json: people", "people.json", rowsOf(60, func(i int) string {
			return sp(`{"id":%d,"name":"%s %s","mail":"%s.%d@example.org","city":"%s-on-%s"}`, i, name(i), name(i*3+1), name(i), i, name(i+4), name(i*5+2))
		}), nil, 1, j},
		{"json: a map by id", "map.json", sp(`{"users":{%s}}`, strings.TrimSuffix(times(120, func(i int) string { return sp(`"u%03d":{"plan":"free","seats":%d},`, i, i%4) }), ",")), []string{`"u077"`}, 1, j},
		{"json: vulnerabilities", "trivy.json", sp(`{"SchemaVersion":2,"Results":[{"Target":"app (debian 12.4)","Vulnerabilities":%s}]}`, rowsOf(150, func(i int) string {
			return sp(`{"VulnerabilityID":"CVE-2023-%d","PkgName":"lib%s","InstalledVersion":"1.%d.0","Severity":"%s","Status":"affected","PrimaryURL":"https://avd.example/CVE-2023-%d"}`, 10000+i, name(i), i%9, at(i, 95, "CRITICAL", []string{"LOW", "MEDIUM"}[i%2]), 10000+i)
		})), []string{"CRITICAL", "CVE-2023-10095", "debian 12.4"}, .35, j},
		{"json: a range of samples", "range.json", sp(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"job":"api"},"values":%s}]}}`, rowsOf(500, func(i int) string {
			return sp(`[%d,"%s"]`, 1772600000+15*i, at(i, 333, "0.9871", sp("0.0%d", 11+i%7)))
		})), []string{"0.9871", `"job":"api"`}, .3, j},
		{"json: large numbers and letters of HTML", "ids.json", rowsOf(150, func(i int) string {
			return sp(`{"id": 900719925474%d, "rate": 1.0, "note": "<b>&amp;</b> \u003cok\u003e", "state": "%s"}`, 1000+i, at(i, 90, "quarantined", "fine"))
		}), []string{"9007199254741000", "1.0", `\u003cok\u003e`, "<b>&amp;</b>", "quarantined"}, .35, j},
		{"json: hits", "hits.json", sp(`{"took":12,"timed_out":false,"hits":{"total":{"value":10000,"relation":"gte"},"hits":%s}}`, rowsOf(100, func(i int) string {
			return sp(`{"_index":"logs","_id":"%x","_score":1.0,"_source":{"@timestamp":"2026-03-04T09:%02d:00Z","level":"%s","message":"%s"}}`, i*2654435761, i%60, at(i, 47, "ERROR", "INFO"), at(i, 47, "ledger of 2026-02 does not balance: 3 cents", sp("request %d served", i)))
		})), []string{"ledger of 2026-02 does not balance: 3 cents", `"value":10000`}, .35, j},
		{"json: assertion results", "jest.json", sp(`{"numFailedTests":1,"numPassedTests":599,"success":false,"testResults":%s}`, rowsOf(60, func(s int) string {
			return sp(`{"name":"/app/src/%s.%d.test.ts","status":"%s","assertionResults":%s}`, name(s), s, at(s, 33, "failed", "passed"), rowsOf(10, func(i int) string {
				if s == 33 && i == 4 {
					return `{"title":"keeps the cart","status":"failed","failureMessages":["Error: expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2\n    at Object.<anonymous> (src/cart.test.ts:41:20)"]}`
				}
				return sp(`{"title":"works %d","status":"passed","failureMessages":[],"duration":%d}`, i, i%5)
			}))
		})), []string{`"numFailedTests":1`, "keeps the cart", "src/cart.test.ts:41:20", ".33.test.ts"}, .4, j},
		{"json: pretty", "pretty.json", "[\n" + strings.TrimSuffix(times(200, func(i int) string {
			return sp("  {\n    \"id\": %d,\n    \"queue\": \"%s\",\n    \"attempts\": %s,\n    \"ok\": %s\n  },\n", i, name(i%4), at(i, 121, "4711", "1"), at(i, 121, "false", "true"))
		}), ",\n") + "\n]\n", []string{"4711", "false", `"id": 121`}, .35, j},
		{"json: Chinese", "cn.json", rowsOf(120, func(i int) string {
			return sp(`{"时间":"09:%02d","级别":"%s","消息":"%s"}`, i%60, at(i, 66, "错误", "信息"), at(i, 66, "订单 7781 支付失败：余额不足", sp("订单 %d 已处理", 7000+i)))
		}), []string{"订单 7781 支付失败：余额不足"}, .35, j},
		{"json: what a command printed", "tool.json", sp(`{"tool":"bash","exit_code":1,"stdout":"%s","stderr":""}`, times(800, func(i int) string {
			return at(i, 500, `cp: error writing '/mnt/out/part-500': No space left on device\n`, sp(`copying part %d of 800 to /mnt/out ... ok\n`, i))
		})), []string{"No space left on device", `"exit_code":1`}, .2, j},
		{"json: attachments", "mail.json", sp(`{"subject":"scan","attachments":%s}`, rowsOf(5, func(i int) string {
			return sp(`{"file":"page-%d.png","type":"image/png","data":"%s"}`, i, strings.Repeat(sp("iVBORw0KGgo%dAAAANSUhEUg8%d2", i, i+3), 200))
		})), []string{"page-0.png", "page-4.png", "image/png"}, .2, j},
		{"json: an error as an object", "calls.json", rowsOf(110, func(i int) string {
			return sp(`{"call":%d,"path":"/v1/orders/%d","took":%d,"error":%s}`, i, 5000+i, 10+i%9, at(i, 58, `{"code":"E_UPSTREAM","cause":"tls: handshake to pay.internal took over 5s"}`, "null"))
		}), []string{"E_UPSTREAM", "pay.internal", `"call":58`}, .35, j},
		{"json: a line on a map", "geo.json", sp(`{"type":"Feature","geometry":{"type":"LineString","coordinates":%s},"properties":{"name":"Route 9"}}`, rowsOf(1500, func(i int) string {
			return sp("[%d.%04d,%d.%04d]", 13, 1000+i*3, 52, 4000+i*2)
		})), []string{"Route 9", "LineString"}, .5, j},
		{"json: a trail of calls", "trail.json", sp(`{"Records":%s}`, rowsOf(90, func(i int) string {
			return sp(`{"eventTime":"2026-03-04T09:%02d:00Z","eventSource":"s3.example","eventName":"GetObject","sourceIPAddress":"10.0.0.%d","userIdentity":{"type":"Role","arn":"arn:x:iam::1:role/reader"},"requestParameters":{"bucket":"b","key":"k/%d"}%s}`, i%60, i%9, i, at(i, 51, `,"errorCode":"AccessDenied","errorMessage":"not authorized to perform s3:GetObject"`, ""))
		})), []string{"AccessDenied", "not authorized to perform s3:GetObject"}, .4, j},
		{"json: instances without a word for it", "fleet.json", sp(`{"page":1,"instances":%s,"next":null}`, rowsOf(130, func(i int) string {
			return sp(`{"host":"h%03d","zone":"z%d","version":"%s","cpu":%d,"uptime_h":%d}`, i, i%3, at(i, 77, "5.9.1", "6.2.0"), 20+i%10, 400+i%13)
		})), []string{"5.9.1", "h077", `"next":null`}, .35, j},
		{"json: a page of search results with text", "search.json", sp(`{"results":%s}`, rowsOf(12, func(i int) string {
			return sp(`{"title":"%s and %s","snippet":"How %s works with %s when %d of them are asked at once, and what to do about it."}`, name(i), name(i+3), name(i+1), name(i+5), i)
		})), []string{name(7) + " and " + name(10)}, 1, j},
		{"json: two arrays side by side", "both.json", sp(`{"before":%s,"after":%s}`, rowsOf(80, func(i int) string { return sp(`{"key":"k%d","size":%d,"state":"present"}`, i, 100+i%5) }), rowsOf(80, func(i int) string {
			return sp(`{"key":"k%d","size":%d,"state":"%s"}`, i, 100+i%5, at(i, 44, "vanished", "present"))
		})), []string{"vanished", `"before"`, `"after"`}, .4, j},
	}
}

func blindStreams() []blind {
	const jl = compress.JSONL
	return []blind{
		{"stream: levels", "app.jsonl", times(300, func(i int) string {
			switch i {
			case 133:
				return `{"time":"09:02:13","level":"error","msg":"cannot renew lease","lease":"L-5521"}` + "\n"
			case 207:
				return `{"time":"09:03:27","level":"fatal","msg":"giving up leadership"}` + "\n"
			}
			return sp(`{"time":"%s","level":"info","msg":"renewed lease","lease":"L-%d"}`+"\n", clock(i), 1000+i)
		}), []string{"L-5521", "giving up leadership"}, .2, jl},
		{"stream: a plan", "plan.json", times(150, func(i int) string {
			return at(i, 101, `{"@level":"error","@message":"Error: Invalid index","@module":"terraform.ui","diagnostic":{"severity":"error","summary":"Invalid index","detail":"The given key does not identify an element in this collection value.","range":{"filename":"net.tf","start":{"line":41}}},"type":"diagnostic"}`+"\n",
				sp(`{"@level":"info","@message":"aws_subnet.s[%d]: Refreshing state... [id=subnet-%05x]","@module":"terraform.ui","type":"refresh_start"}`+"\n", i, i*977))
		}), []string{"Invalid index", "net.tf", "41"}, .3, jl},
		{"stream: go test -json", "test.json", times(200, func(i int) string {
			if i == 120 {
				return `{"Time":"2026-03-04T09:00:00Z","Action":"output","Package":"example.org/pay","Test":"TestRound","Output":"    round_test.go:31: Round(2.675) = 2.67, want 2.68\n"}` + "\n" +
					`{"Time":"2026-03-04T09:00:00Z","Action":"fail","Package":"example.org/pay","Test":"TestRound","Elapsed":0.01}` + "\n"
			}
			return sp(`{"Time":"2026-03-04T09:00:00Z","Action":"pass","Package":"example.org/pay","Test":"Test%d","Elapsed":0}`+"\n", i)
		}), []string{"round_test.go:31: Round(2.675) = 2.67, want 2.68", `"Action":"fail"`}, .3, jl},
		{"stream: spans", "spans.ndjson", times(240, func(i int) string {
			return sp(`{"trace":"%016x","span":"%08x","name":"GET /cart","ms":%s,"status":{"code":"OK"}}`+"\n", i*7919, i*31, at(i, 150, "30017", sp("%d", 12+i%6)))
		}), []string{"30017"}, .3, jl},
		{"stream: cargo messages", "cargo.json", times(90, func(i int) string {
			return at(i, 60, `{"reason":"compiler-message","package_id":"shop 0.1.0","message":{"level":"error","code":{"code":"E0502"},"message":"cannot borrow `+"`self.items`"+` as mutable because it is also borrowed as immutable","spans":[{"file_name":"src/cart.rs","line_start":88}]}}`+"\n",
				sp(`{"reason":"compiler-artifact","package_id":"%s%d 1.0.%d","target":{"kind":["lib"],"name":"%s"},"fresh":true,"filenames":["/t/lib%s-%06x.rlib"]}`+"\n", name(i), i, i, name(i), name(i), i*99991))
		}) + `{"reason":"build-finished","success":false}` + "\n", []string{"E0502", "src/cart.rs", "88", `"success":false`}, .35, jl},
		{"stream: a program that says something first", "svc.log", "starting service\nlistening on :8080\n" + times(200, func(i int) string {
			return at(i, 77, `{"lvl":"warn","msg":"slow query","ms":9120,"sql":"select * from line where order_id = 5"}`+"\n", sp(`{"lvl":"info","msg":"query","ms":%d}`+"\n", 3+i%4))
		}), []string{"listening on :8080", "9120", "slow query"}, .3, jl},
		{"stream: rows of a CSV as arrays", "rows.jsonl", times(150, func(i int) string {
			return sp(`[%d,"%s","%s"]`+"\n", i, name(i%5), at(i, 70, "REFUSED", "sent"))
		}), []string{"REFUSED"}, .4, jl},
	}
}
