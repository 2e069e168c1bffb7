import type { Bench } from './client-bench.ts'
import { installClient } from './client-install.ts'
import { runClient } from './client-run.ts'

const client = await installClient({
  name: 'claude-code',
  npm: '@anthropic-ai/claude-code',
  version: '2.1.329',
  programs: ['', '-musl'].map(
    (variant) => `@anthropic-ai/claude-code-${process.platform}-${process.arch}${variant}/claude`,
  ),
})

/** Whether Claude Code cannot be run here. */
export const claudeCodeMissing = 'missing' in client

/** The two ways to give it a key, and the header that each becomes. */
export const CREDENTIALS = [
  { variable: 'ANTHROPIC_AUTH_TOKEN', header: 'authorization', scheme: 'Bearer ' },
  { variable: 'ANTHROPIC_API_KEY', header: 'x-api-key', scheme: '' },
] as const

export interface ClaudeCodeTask {
  prompt: string
  model: string
  /** Name of the variable with the key, one of `CREDENTIALS`. */
  variable?: string
  /** The tools it has, all of them allowed: with more, the model's own choice would start agents that start agents. */
  tools?: readonly string[]
  /** More of its command line. */
  options?: readonly string[]
}

/** Has Claude Code do something. @returns what it prints at its end as JSON. @throws when it fails */
export async function askClaudeCode(bench: Bench, task: ClaudeCodeTask): Promise<Record<string, unknown>> {
  const { prompt, model, variable = 'ANTHROPIC_AUTH_TOKEN', tools = ['Read'], options = [] } = task
  const { stdout } = await runClient({
    program: 'program' in client ? client.program : '',
    arguments: [
      '-p',
      prompt,
      '--model',
      model,
      '--output-format',
      'json',
      '--tools',
      tools.join(','),
      '--allowedTools',
      tools.join(','),
      ...options,
    ],
    environment: {
      ...bench.environment,
      ANTHROPIC_BASE_URL: bench.proxy.url,
      [variable]: bench.tenant.key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    folder: bench.folder,
  })
  return JSON.parse(stdout) as Record<string, unknown>
}
