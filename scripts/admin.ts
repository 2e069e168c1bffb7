// npm run admin -- <group> <verb> [--options]: administers a gateway over its management API. --help lists all.
import { runAdmin } from './admin/run-admin.ts'
import { processTerminal } from './admin/terminal.ts'

process.exitCode = await runAdmin(process.argv.slice(2), processTerminal())
