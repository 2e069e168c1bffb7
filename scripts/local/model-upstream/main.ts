// node scripts/local/model-upstream/main.ts --port 8081 [--no-record]
import { runAsProcess } from '../stand-in-process.ts'
import { startModelUpstream } from './server.ts'

await runAsProcess('local model upstream', { 'no-record': { type: 'boolean' } }, (values, port) =>
  startModelUpstream({
    port,
    // Without the record there is no log of requests either: under load both cost more than the answers.
    ...(values['no-record'] === true
      ? { record: false }
      : { onAnswered: (line) => process.stderr.write(`local model upstream: ${line}\n`) }),
  }),
)
