import { env } from 'cloudflare:workers'
import type { Bindings } from '../../src/env.ts'
import type { ToolResult } from '../../src/responses/model/tool-result.ts'
import { responseObjectClient } from '../../src/responses/pool/pool-client.ts'
import type { HostedTool } from '../../src/responses/tools/hosted-tool.ts'
import { ResponsePool } from '../../workers/response-pool.ts'
import { ResponseStream } from '../../workers/response-stream.ts'

/** A run of a tool, which ends as the test says. */
export interface ToolRun {
  callId: string
  arguments: string
  aborted: boolean
  /** Whether it goes on after its signal. */
  ignoresSignal?: boolean
  result: ToolResult | Error | null
}

/** What tools were asked, in order; `answer` is called with each, for tools that need not be told what to say. */
export const toolRuns: { all: ToolRun[]; answer: (run: ToolRun) => void } = { all: [], answer: () => {} }

/** Tools of this side: `hosted_read` may be run again where it is not known whether it ran, `hosted_write` may not. */
const tool = (name: string, repeatable: boolean): HostedTool => ({
  purpose: 'hosted',
  family: repeatable ? 'browser' : 'shell',
  definition: { type: 'function', name, parameters: { type: 'object' } },
  itemType: 'mcp_call',
  members: { name },
  repeatable,
  timeLimit: 60_000,
  async run({ callId, arguments: json }, signal) {
    const run: ToolRun = { callId, arguments: json, aborted: false, result: null }
    signal.addEventListener('abort', () => {
      run.aborted = true
    })
    toolRuns.all.push(run)
    toolRuns.answer(run)
    while (run.result === null && (!run.aborted || run.ignoresSignal))
      await new Promise((resolve) => setTimeout(resolve, 1))
    if (run.result === null || run.result instanceof Error) throw run.result ?? new Error('aborted')
    return run.result
  },
})

export const TOOLS = [tool('hosted_read', true), tool('hosted_write', false)]

const responseObject = (organizationId: string, responseId: string) =>
  responseObjectClient(
    { RESPONSE_STREAMS: env.TOOL_RESPONSES, RESPONSE_POOLS: env.TOOL_POOLS },
    organizationId,
    responseId,
  )

/** The object of a response with tools of this side. */
export class ToolResponseStream extends ResponseStream {
  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment, { hostedTools: TOOLS, responseObject })
  }
}

/** The same for many responses. */
export class ToolResponsePool extends ResponsePool {
  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment, { hostedTools: TOOLS, responseObject })
  }
}
