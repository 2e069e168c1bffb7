// node scripts/node/watchdog.ts
//
// Ends process groups whose owner is gone. It reads lines on stdin: `+<group id>` begins to watch a group,
// `-<group id>` ends the watch. When stdin closes, because the owner ended in whatever way, every group that is still
// watched is ended by SIGTERM, then SIGKILL. workerd and wrangler survive their parent otherwise and
// keep the port.
import { createInterface } from 'node:readline'
import { endGroup } from './process-group.ts'

/** Longer than the time within which a stand-in ends after its owner. */
const GRACE_MS = 1_500

const groups = new Set<number>()

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const match = /^([+-])(\d+)$/.exec(line)
  if (match === null) return
  const group = Number(match[2])
  if (match[1] === '+') groups.add(group)
  else groups.delete(group)
})
lines.on('close', () => {
  Promise.all([...groups].map((group) => endGroup(group, GRACE_MS))).then(() => process.exit(0))
})
// A terminal's Ctrl-C or an owner's signal is for the owner; the watchdog ends when stdin does.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
