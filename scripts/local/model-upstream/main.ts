// node scripts/local/model-upstream/main.ts --port 8081 [--no-record]
import { runAsProcess } from '../stand-in-process.ts'
import { startModelUpstream } from './server.ts'

await runAsProcess('local model upstream', { 'no-record': { type: 'boolean' } }, (values, port) =>
  startModelUpstream({
    port,
    record: values['no-record'] !== true,
    onAnswered: (line) => process.stderr.write(`local model upstream: ${line}\n`),
  }),
)
