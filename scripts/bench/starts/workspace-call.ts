import type { CommandOutput } from '../../../src/workspace/contract.ts'
import { BenchFailure } from '../measure.ts'

const LIMITS = { timeoutMs: 30_000, outputBytes: 65_536, egress: { allow: [], deny: [] } }

/** Runs a command in a workspace of the script of tools. @throws BenchFailure unless it succeeds */
export async function execute(url: string, workspace: string, command: string): Promise<void> {
  const response = await fetch(`${url}/workspaces/${workspace}/exec`, {
    method: 'POST',
    body: JSON.stringify({ callId: 'bench', commands: [command], ...LIMITS }),
  })
  const text = await response.text()
  if (!response.ok) throw new BenchFailure(`exec: status ${response.status}: ${text.slice(0, 300)}`)
  const { output } = JSON.parse(text) as { output: CommandOutput[] }
  for (const { outcome, stderr } of output) {
    if (outcome.type !== 'exit' || outcome.exit_code !== 0)
      throw new BenchFailure(`a command failed: ${stderr}`)
  }
}
