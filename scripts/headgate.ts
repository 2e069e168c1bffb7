#!/usr/bin/env node
// npx headgate <group> <verb> [--options]: administers any installation. Bundled for older versions of Node.js by scripts/build-headgate.ts.
import { runHeadgate } from './admin/run-headgate.ts'
import { processTerminal } from './admin/terminal.ts'

process.exitCode = await runHeadgate(process.argv.slice(2), processTerminal())
