// npm run admin -- <group> <verb> [--options]: administers a gateway over its management API. --help lists all.
import { text } from 'node:stream/consumers'
import { runAdmin } from './admin/run-admin.ts'

process.exitCode = await runAdmin(process.argv.slice(2), {
  environment: process.env,
  readInput: () => text(process.stdin),
  print: (line) => process.stdout.write(`${line}\n`),
  complain: (line) => process.stderr.write(`${line}\n`),
})
