import type { CommandOutput, Operation } from '../../../src/workspace/contract.ts'
import { BenchFailure } from '../measure.ts'

let calls = 0

/** One request to the script of tools, with an id of its own. @throws BenchFailure when it is refused */
export async function callWorkspace(
  url: string,
  workspace: string,
  operation: Operation,
  members: object,
): Promise<unknown> {
  calls += 1
  const response = await fetch(`${url}/workspaces/${workspace}/${operation}`, {
    method: 'POST',
    body: JSON.stringify({ callId: `bench/${process.pid}-${calls}`, ...members }),
  })
  const text = await response.text()
  if (!response.ok) throw new BenchFailure(`${operation}: status ${response.status}: ${text.slice(0, 300)}`)
  return JSON.parse(text)
}

/** Runs commands in a workspace. @throws BenchFailure unless each succeeds */
export async function execute(url: string, workspace: string, commands: string[]): Promise<void> {
  const limits = { timeoutMs: 30_000, outputBytes: 65_536, egress: { allow: [], deny: [] } }
  const { output } = (await callWorkspace(url, workspace, 'exec', { commands, ...limits })) as {
    output: CommandOutput[]
  }
  for (const { outcome, stderr } of output) {
    if (outcome.type !== 'exit' || outcome.exit_code !== 0)
      throw new BenchFailure(`a command failed: ${stderr}`)
  }
}
