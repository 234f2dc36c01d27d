package signature

// Java: the deepest `Caused by:` is what really happened. Classes of the build
// tools themselves only carry it.
var javaRules = []rule{
	{
		name: "java.spring", lits: []string{"failed to start", "required a", "failed to configure", "failed to bind", "failed to load property source", "dependencies of some of the beans", "could not be registered", "an attempt was made to call", "is not eligible", "could not be loaded"}, re: `^(?:Web server failed to start|Parameter \d+ of .+ required a|Field \S+ in \S+ required a|(?:A component|.+) required a (?:bean|single bean)|Failed to (?:configure|bind|load property source)|The dependencies of some of the beans|The bean '.+' could not be|An attempt was made to call|.+ could not be loaded)`, need: "application failed to start", conf: 0.965,
		detail: detail{how: after, re: `^\s*((?:Property|Value|Reason|Action): .+|Reason: .+)`, lines: 8},
		yes:    []string{"Web server failed to start. Port 8080 was already in use.", "Parameter 0 of constructor in com.acme.CartController required a bean of type 'com.acme.CartRepo' that could not be found."},
		no:     []string{"APPLICATION FAILED TO START"},
	},
	{
		name: "java.crash", lits: []string{"a fatal error has been detected by the java"}, re: `A fatal error has been detected by the Java Runtime Environment`, conf: 0.968,
		detail: detail{how: below, re: `^# Problematic frame:`, lines: 20},
		yes:    []string{"# A fatal error has been detected by the Java Runtime Environment:"},
		no:     []string{"fatal error: x"},
	},
	{
		name: "java.javac", lits: []string{": error: ", "fehler:", "erreur:"}, re: `^\s*(?:\[javac\] )?\S.*\.(?:java|groovy):\d+: (?:error|Fehler|erreur): `, conf: 0.95,
		detail: detail{how: after, re: `^\s*(?:\[javac\] )?\s*(symbol: .+|required: .+|reason: .+)`, lines: 5},
		yes:    []string{"B.java:2: error: incompatible types: String cannot be converted to int", "/x/src/A.java:3: error: cannot find symbol"},
		no:     []string{"B.java:2: warning: [deprecation] x", "2 errors"},
	},
	{
		name: "java.scala", lits: []string{".scala:", "error] "}, re: `^(?:\[error\] )(?:-- )?(?:\[E\d+\] .*|\S+\.scala:\d+(?::\d+)?: .+)`, conf: 0.95,
		yes: []string{"[error] /x/src/A.scala:3:5: not found: value x", "[error] -- [E006] Not Found Error: src/A.scala:3:5"},
		no:  []string{"[error] (Compile / compileIncremental) Compilation failed"},
	},
	{
		name: "java.caused_by", lits: []string{"caused by: "}, re: `^\s*(?:\[ERROR\] )?Caused by: (?:[\w$]+\.)+[\w$]+`, not: `Caused by: (?:org\.gradle\.|org\.apache\.maven\.|org\.jetbrains\.kotlin\.|org\.codehaus\.plexus|.*CompilationFailedException|org\.eclipse\.aether|Failed to download|error sending request)`, need: "at |exception|error", conf: 0.88, pick: deepest, trace: true,
		yes: []string{"Caused by: java.net.ConnectException: Connection refused"},
		no:  []string{"Caused by: org.apache.maven.plugin.MojoExecutionException: x"},
	},
	{
		name: "java.exception", lits: []string{"exception", "error"}, re: `^\s*(?:\[ERROR\] )?(?:Exception in thread "[^"]*" )?(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Failure|Throwable)\w*(?::.*)?$`, not: `^\s*Caused by|org\.apache\.maven`, conf: 0.85, trace: true,
		yes: []string{`Exception in thread "main" java.lang.NullPointerException: x`, "org.opentest4j.AssertionFailedError: expected: <3> but was: <4>", "java.lang.OutOfMemoryError: Java heap space"},
		no:  []string{"\tat com.acme.Foo.bar(Foo.java:3)", "Caused by: java.net.ConnectException: x"},
	},
	{
		name: "java.option", lits: []string{"error: "}, re: `^error: (?:file not found|release version|invalid|no source files|module|cannot|warnings found|class names|unmappable|package)`, need: ".java|javac|release|source|class|module", conf: 0.89,
		yes: []string{"error: file not found: Nope.java", "error: release version 99 not supported", "error: invalid target release: 21"},
		no:  []string{"error: x"},
	},
	{
		name: "java.launch", lits: []string{"could not find or load main class", "unable to access jarfile", "could not create the java virtual machine", "insufficient memory for the java", "invalid target release", "invalid flag", "class file has wrong version", "java_home", "unsupportedclassversionerror", "no main manifest attribute"},
		re: `(?i)Could not find or load main class|Unable to access jarfile|insufficient memory for the Java|invalid (?:target|source) release|invalid flag|wrong version|JAVA_HOME .*(?:not|invalid)|no main manifest attribute|^error: (?:release version|file not found|invalid)`, conf: 0.9,
		yes: []string{"Error: Could not find or load main class com.acme.Main", "Error: Unable to access jarfile app.jar", "error: invalid target release: 21"},
		no:  []string{"Error: Could not create the Java Virtual Machine."},
	},
}

var mavenRules = []rule{
	{
		name: "maven.compile", lits: []string{"[error] "}, re: `^\[ERROR\] (?:file://)?\S.*\.(?:java|kt|groovy|scala|xml):\s?[\[(]\d+(?:,\s?\d+)?[\])]:? `, conf: 0.96,
		detail: detail{how: after, re: `^(?:\[ERROR\])?\s+(symbol: .+|required: .+|found: .+)`, lines: 4},
		yes:    []string{"[ERROR] /x/src/main/java/com/acme/Invoice.java:[41,25] cannot find symbol", "[ERROR] file:///x/A.kt:[3,5] Unresolved reference: y"},
		no:     []string{"[ERROR] COMPILATION ERROR :", "[WARNING] /x/A.java:[3,4] deprecated"},
	},
	{
		name: "maven.style", lits: []string{"[error] ", "[warn] "}, re: `^\[(?:ERROR|WARN)\] \S+\.(?:java|xml|properties|kt):\[?\d+(?:[:,]\d+)?\]?:? (?:\(\w+\) \w+: )?.+$`, need: "checkstyle", conf: 0.95,
		yes: []string{"[ERROR] /x/src/main/java/com/acme/Cart.java:12:5: Missing a Javadoc comment. [MissingJavadocMethod]", "[ERROR] src/main/java/A.java:[12,5] (javadoc) MissingJavadocMethod: Missing a Javadoc comment."},
		no:  []string{"[ERROR] Failed to execute goal x"},
	},
	{
		name: "maven.compiler", lits: []string{"source option", "target option", "target release", "source release", "release version", "no compiler is provided", "fatal error compiling"}, re: `^\[ERROR\] (?:Source option|Target option|error: |invalid (?:target|source) release|[Rr]elease version|No compiler is provided)|Fatal error compiling`, conf: 0.95,
		yes: []string{"[ERROR] Source option 5 is no longer supported. Use 7 or later.", "[ERROR] Failed to execute goal a:b:3.11.0:compile (default-compile) on project shop: Fatal error compiling: error: invalid target release: 21 -> [Help 1]"},
		no:  []string{"[ERROR] COMPILATION ERROR :", "[WARNING] source release 8 is obsolete"},
	},
	{
		name: "maven.pom", lits: []string{"[fatal]", "[error] 'dep", "[error] 'build", "[error] malformed", "non-parseable", "non-resolvable", "[error] child module", "[error] unresolveable"}, re: `^\[FATAL\] |^\[ERROR\] (?:'(?:dependencies|build|parent|modules|version|packaging)|Malformed|Non-parseable|Non-resolvable|Child module|Unresolveable)`, conf: 0.95,
		yes: []string{"[FATAL] Non-parseable POM /x/pom.xml: unexpected end tag", "[ERROR] 'dependencies.dependency.version' for org.x:y:jar is missing. @ line 12, column 17"},
		no:  []string{"[ERROR] The build could not read 1 project -> [Help 1]"},
	},
	{
		name: "maven.cause", lits: []string{"caused by: "}, re: `^\s*(?:\[ERROR\] )?Caused by: (?:[\w$]+\.)+[\w$]+`, not: `Caused by: (?:org\.apache\.maven\.|org\.codehaus\.plexus|.*CompilationFailedException|org\.eclipse\.aether)`, need: "[error]", conf: 0.94, pick: deepest, trace: true,
		detail: detail{how: before, re: `^\[ERROR\] (\S+).*<<< (?:FAILURE|ERROR)!`, lines: 400},
		yes:    []string{"Caused by: java.net.ConnectException: Connection refused"},
		no:     []string{"Caused by: org.apache.maven.plugin.MojoExecutionException: x"},
	},
	{
		name: "maven.test", lits: []string{"<<< failure!", "<<< error!"}, re: `<<< (?:FAILURE|ERROR)!`, not: `Tests run:`, conf: 0.93,
		detail: detail{how: next},
		yes:    []string{"[ERROR] com.acme.FooTest.adds -- Time elapsed: 0.02 s <<< FAILURE!", "adds(com.acme.FooTest)  Time elapsed: 0.01 sec  <<< FAILURE!"},
		no:     []string{"[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0 <<< FAILURE! -- in com.acme.FooTest"},
	},
	{
		name: "maven.test_row", lits: []string{"[error] "}, re: `^\[ERROR\]\s+[\w$.]+(?:Test|Tests|IT|TestCase|Spec)?[.>][\w$.>]+:\d+ `, conf: 0.92,
		yes: []string{"[ERROR]   FooTest.adds:12 expected: <3> but was: <4>"},
		no:  []string{"[ERROR] Failures: "},
	},
	{
		name: "maven.dependency", lits: []string{"could not resolve dependencies", "could not find artifact", "could not transfer artifact", "failure to find", "was not found in", "could not be resolved"}, re: `^\[ERROR\] .*(?:Could not resolve dependencies|Could not find artifact|Could not transfer artifact|Failure to (?:find|transfer)|was not found in|could not be resolved)`, conf: 0.94,
		detail: detail{how: within, re: `((?:Could not find artifact|Could not transfer artifact|Failure to find) \S+)`},
		yes:    []string{"[ERROR] Failed to execute goal on project x: Could not resolve dependencies for project a:b:jar:1: Could not find artifact c:d:jar:2 in central"},
		no:     []string{"[WARNING] The POM for c:d:jar:2 is missing"},
	},
	{
		name: "maven.enforcer", lits: []string{"[error] rule "}, re: `^\[ERROR\] Rule \d+: `, conf: 0.93,
		detail: detail{how: next},
		yes:    []string{"[ERROR] Rule 0: org.apache.maven.enforcer.rules.version.RequireJavaVersion failed with message:"},
		no:     []string{"[ERROR] Rules"},
	},
	{
		name: "maven.goal", lits: []string{"failed to execute goal", "no plugin found for prefix", "unknown lifecycle phase", "no goals have been specified", "plugin "}, re: `^\[ERROR\] (?:Failed to execute goal|No plugin found|Unknown lifecycle phase|No goals|Plugin \S+ or one of its)`, conf: 0.86,
		detail: detail{how: after, re: `^\[ERROR\] (\S.+)`, lines: 1},
		yes:    []string{"[ERROR] Failed to execute goal org.apache.maven.plugins:maven-enforcer-plugin:3.0:enforce (x) on project y: Some Enforcer rules have failed."},
		no:     []string{"[INFO] BUILD FAILURE"},
	},
	{
		name: "maven.error", lits: []string{"[error] "}, re: `^\[ERROR\] +\S`, not: `COMPILATION ERROR|BUILD (?:FAILURE|ERROR)$|There are test failures|^\[ERROR\] +(?:-> )?\[Help \d+\]|re-run Maven|Re-run Maven|To see the full stack|For more information|^\[ERROR\] (?:Errors|Failures|Tests run|There are test failures|Please refer)|After correcting`, conf: 0.8,
		yes: []string{"[ERROR] The goal you specified requires a project to execute but there is no POM in this directory (/x)."},
		no:  []string{"[ERROR] -> [Help 1]", "[ERROR] COMPILATION ERROR :"},
	},
}

var gradleRules = []rule{
	{
		name: "gradle.kotlin", lits: []string{"e: "}, re: `^e: (?:file:|/|\w+:|\S+\.kts?|\[ksp\]|warnings found)`, conf: 0.96,
		yes: []string{"e: file:///x/A.kt:42:17 Unresolved reference 'CartViewModel'.", "e: /x/A.kt: (3, 5): Unresolved reference: y"},
		no:  []string{"w: file:///x/A.kt:1:1 unused"},
	},
	{
		name: "gradle.javac", lits: []string{": error: "}, re: `^\S.*\.(?:java|groovy):\d+: error: |AAPT: error: `, need: "gradle|> task |build failed in", conf: 0.955,
		detail: detail{how: after, re: `^\s*(symbol: .+|required: .+)`, lines: 5},
		yes:    []string{"/x/src/A.java:3: error: cannot find symbol", "ERROR:/x/res/a.xml:3: AAPT: error: resource string/x not found."},
		no:     []string{"/x/A.java:3: warning: x"},
	},
	{
		name: "gradle.lint", lits: []string{": error: "}, re: `^\S+:\d+: Error: .+ \[\w+(?: from [^\]]+)?\]$`, conf: 0.955,
		yes: []string{"/x/src/main/AndroidManifest.xml:9: Error: Attribute allowBackup is deprecated from Android 12 and higher [DataExtractionRules]"},
		no:  []string{"/x/a.xml:3: Warning: x [Y]"},
	},
	{
		name: "gradle.style", lits: []string{".kt:", ".java:", ".kts:"}, re: `^\S+\.(?:kts?|java):\d+(?::\d+)?:\s+\S.*(?:\[\w+\]|\([\w:-]+\))$|^\S+\.(?:kt|java):\d+:\t\w+:\t`, need: "detekt|pmd|ktlint|checkstyle|spotless", conf: 0.952,
		yes: []string{"/x/src/main/kotlin/com/acme/Usecase.kt:9:56: Unnecessary long whitespace [NoMultipleSpaces]", "/x/net/acme/Svc.java:339:\tFinalFieldCouldBeStatic:\tThis final field could be made static"},
		no:  []string{"w: /x/A.kt:3:4 x"},
	},
	{
		name: "gradle.native", lits: []string{"error: ", "undefined reference to", "undefined symbol"}, re: `^\s*(?:\S+:\d+:\d+: (?:fatal )?error: |.*undefined reference to |ld(?:\.lld)?: error: undefined symbol: )`, need: "externalnativebuild|build command failed", conf: 0.951,
		yes: []string{"  /x/src/main/cpp/native-lib.cpp:8:5: error: use of undeclared identifier 'helo'"},
		no:  []string{"  1 error generated."},
	},
	{
		name: "gradle.test", lits: []string{" failed"}, re: `^\S.* > .+ FAILED$`, not: `^> Task |^(?:Execution|Task) `, conf: 0.95,
		detail: detail{how: after, re: `^\s+(\S.*)`, lines: 2},
		yes:    []string{"CartTest > totals() FAILED", "com.acme.CartTest > totals FAILED"},
		no:     []string{"> Task :test FAILED", "BUILD FAILED in 25s"},
	},
	{
		name: "gradle.script", lits: []string{"file '", "general error during"}, re: `^\s+(?:(?:build|settings) file '.+': \d+: \S|General error during \w+: \S)|^e: .+\.kts:\d+`, conf: 0.95,
		yes: []string{"  build file '/home/ci/w/build.gradle': 3: unexpected token: } @ line 3, column 1.", "  General error during conversion: Unsupported class file major version 65"},
		no:  []string{"Build file '/home/ci/w/build.gradle' line: 2"},
	},
	{
		name: "gradle.cause", lits: []string{"> "}, re: `^\s*> \S`, not: `^> (?:Task |Run |Get more|Configure |IDLE|Transform|Starting|Build )|There were failing tests|Compilation (?:error|failed)[.;]|A failure occurred while executing|Get more help|for the command line|Process 'command .*' finished with non-zero`, need: "* what went wrong:", conf: 0.93, pick: deepest,
		yes: []string{"   > Could not find com.acme:billing-client:2.7.1.", "> Could not resolve all files for configuration ':a'."},
		no:  []string{"> Task :core:compileJava FAILED", "> Run with --stacktrace option to get the stack trace."},
	},
	{
		name: "gradle.wrong", lits: []string{"not found in", "could not ", "cannot ", "a problem occurred", "unsupported", "plugin [", "unable to", "is not defined", "must ", "execution failed for", "daemon", "build file", "settings file", "script '", "timeout", "no such"}, re: `^(?:Task '.+' not found|Project '.+' not found|Could not |Cannot |Plugin \[|Unsupported |Unable to|Gradle build daemon disappeared|The .* (?:must|is not)|Execution failed for task|A problem occurred|Timeout|No such|Value ')`, need: "* what went wrong:", conf: 0.9,
		yes: []string{"Task 'deploy' not found in root project 'shop'.", "Gradle build daemon disappeared unexpectedly (it may have been killed or may have crashed)"},
		no:  []string{"FAILURE: Build failed with an exception.", "BUILD FAILED in 2s"},
	},
}
