import * as z from 'zod'
import { objectIn } from '../../../gateway/protocols/json.ts'
import { SHELL_LIMITS, WORKSPACE_LIMITS } from '../../../workspace/limits.ts'
import { readArguments, strictParameters } from '../arguments.ts'
import type { HostedTool } from '../hosted-tool.ts'
import type { WorkspaceOf } from './workspace-client.ts'

const DEFAULT_OUTPUT_BYTES = 64 * 1024

const shellArguments = z.strictObject({
  commands: z
    .array(z.string().min(1))
    .min(1)
    .max(SHELL_LIMITS.commands)
    .refine((commands) => commands.join('').length <= SHELL_LIMITS.sourceLength, {
      message: `must have at most ${SHELL_LIMITS.sourceLength} characters together; write long content with write_file`,
    })
    .describe(
      'Commands in bash, which run one after another. Variables and the working directory carry over.',
    ),
  timeout_ms: z
    .int()
    .min(1)
    .max(SHELL_LIMITS.commandMs)
    .nullish()
    .describe(`Time limit of each command in milliseconds; null for ${SHELL_LIMITS.commandMs}.`),
  max_output_length: z
    .int()
    .min(1)
    .max(SHELL_LIMITS.outputBytes)
    .nullish()
    .describe(
      `Bytes of stdout, and of stderr, of each command that are returned; null for ${DEFAULT_OUTPUT_BYTES}.`,
    ),
})

const DESCRIPTION = `Runs commands in a bash-like shell on the files of this conversation. Each call begins in /workspace, whose \
files last between calls; /tmp lasts too. Available: the usual text and file commands (cat, ls, find, grep, rg, sed, awk, jq, sort, \
diff, gzip, base64, sha256sum, …), pipes, redirections, loops and functions. The network is not available, except for curl to hosts that an administrator has allowed. Not available: compilers, package \
managers, python, node, other binaries, and background processes. Limits: ${SHELL_LIMITS.commandMs / 1_000} s and 10000 \
steps for each command, ${WORKSPACE_LIMITS.bytes / 2 ** 20} MB and ${WORKSPACE_LIMITS.entries} files in all.`

/** The shell on the workspace of a conversation. Its items have the members of the official `shell_call`, and the output. */
export function shellTool(workspaceOf: WorkspaceOf): HostedTool {
  return {
    purpose: 'hosted',
    family: 'shell',
    definition: {
      type: 'function',
      name: 'shell',
      description: DESCRIPTION,
      parameters: strictParameters(shellArguments),
      strict: true,
    },
    itemType: 'shell_call',
    members: { action: NO_ACTION, environment: null },
    membersOf: (json) => ({ action: actionOf(json) }),
    repeatable: false,
    timeLimit: SHELL_LIMITS.callMs + 15_000,
    async run({ owner, workspaceId, responseId, callId, arguments: json, rights }, signal) {
      const { commands, timeout_ms, max_output_length } = readArguments(shellArguments, json)
      const timeoutMs = timeout_ms ?? SHELL_LIMITS.commandMs
      const outputBytes = max_output_length ?? DEFAULT_OUTPUT_BYTES
      const { output } = await workspaceOf(owner, workspaceId).run(
        'exec',
        { callId: `${responseId}/${callId}`, commands, timeoutMs, outputBytes, egress: rights.shell },
        { signal, timeLimit: Math.min(SHELL_LIMITS.callMs, timeoutMs * commands.length) + ANSWER_MS },
      )
      const action = { commands, timeout_ms: timeoutMs, max_output_length: outputBytes }
      return { status: 'completed', members: { action, output } }
    },
  }
}

/** The official type has an action from the beginning of the item. */
const NO_ACTION = { commands: [], timeout_ms: null, max_output_length: null }

function actionOf(json: string): object {
  const parsed = shellArguments.safeParse(objectIn(json))
  return parsed.success ? { ...NO_ACTION, ...parsed.data } : NO_ACTION
}

/** Time for the network, for earlier calls of the same workspace, and for the end of a command that does not notice its limit. */
const ANSWER_MS = 12_000
