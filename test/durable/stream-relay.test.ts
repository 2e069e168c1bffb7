// The same tests in the runtime itself, whose streams differ from Node's in what they promise and when.
import '../unit/gateway/stream-relay.test.ts'
import '../unit/gateway/stream-relay-callers.test.ts'
