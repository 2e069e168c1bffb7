import { vi } from 'vitest'
import { gateway } from '../../harness/gateway.ts'
import { type Answer, jsonOf } from '../../harness/send.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { administrator, type Tenant, uniqueName } from '../../harness/tenant.ts'
import { ask, type Json } from './response-calls.ts'

/** A run as its user reads it. */
export interface ReadRun extends Json {
  runId: string
  conversationId: string
  status: string
  result: string | null
}

type Address = Pick<GatewayAddress, 'baseUrl' | 'adminToken'>

/** A definition with these steps; what is not given has its default. */
export const definitionOf = (steps: Json[], more: Json = {}): Json => ({
  name: uniqueName('agent'),
  description: 'Made by a test.',
  steps: steps.map((step) => ({ model: 'scripted-chat', tools: { hosted: [] }, ...step })),
  ...more,
})

/** Creates an agent of the tenant's user. @returns its id. */
export async function createAgent(
  tenant: Tenant,
  definition: Json,
  address: Address = gateway(),
  createdBy = tenant.userId,
): Promise<string> {
  const body = { created_by: createdBy, definition }
  const agent = await administrator(address).ask<{ id: string }>('POST', `${tenant.base}/agents`, body)
  return agent.id
}

export const post = (
  tenant: Pick<Tenant, 'key'>,
  path: string,
  body: unknown,
  { baseUrl = gateway().baseUrl, headers = {} }: { baseUrl?: string; headers?: Record<string, string> } = {},
): Promise<Answer> => ask(tenant.key, 'POST', path, { baseUrl, headers, body: JSON.stringify(body) })

/** Triggers a run. @throws unless it is accepted. */
export async function trigger(
  tenant: Pick<Tenant, 'key'>,
  agentId: string,
  inputs: Record<string, string> = {},
  options: { baseUrl?: string; headers?: Record<string, string> } = {},
): Promise<{ runId: string; conversationId: string }> {
  const values = Object.entries(inputs).map(([name, value]) => ({ name, value }))
  const answer = await post(tenant, '/v1/agents/runs', { agentId, inputs: values }, options)
  if (answer.status !== 202) throw new Error(`status ${answer.status}: ${answer.text}`)
  return jsonOf(answer) as { runId: string; conversationId: string }
}

export async function readRun(
  tenant: Pick<Tenant, 'key'>,
  runId: string,
  address: { baseUrl?: string } = {},
): Promise<ReadRun> {
  const answer = await ask(tenant.key, 'GET', `/v1/runs/${runId}`, address)
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text}`)
  return jsonOf(answer) as ReadRun
}

/** The run when it has ended. */
export const endedRun = (
  tenant: Pick<Tenant, 'key'>,
  runId: string,
  { timeout = 15_000, ...address }: { baseUrl?: string; timeout?: number } = {},
): Promise<ReadRun> =>
  vi.waitFor(
    async () => {
      const run = await readRun(tenant, runId, address)
      if (run.status === 'in_progress') throw new Error('the run is in progress')
      return run
    },
    { timeout, interval: 100 },
  )

/** The run as administrators see it, with its attempts. */
export const runDetails = (tenant: Tenant, runId: string, address: Address = gateway()) =>
  administrator(address).ask<Json & { attempts: Json[] }>('GET', `${tenant.base}/runs/${runId}`)

/** The text of a run's result. */
export function resultText({ result }: ReadRun): string {
  const { parts } = JSON.parse(result ?? 'null') as { parts: Array<{ text: string }> }
  return parts.map(({ text }) => text).join('')
}

/** The evaluation of a run, as its user reads it. */
export interface Evaluation {
  result: string
  steps: Array<{ stepNumber: number; name: string | null; result: string | null; explanation: string | null }>
}

export async function readEvaluation(
  tenant: Pick<Tenant, 'key'>,
  runId: string,
  address: { baseUrl?: string } = {},
): Promise<Evaluation> {
  const answer = await ask(tenant.key, 'GET', `/v1/runs/${runId}/evals`, address)
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text}`)
  return jsonOf(answer) as unknown as Evaluation
}

/** The evaluation of a run when it is final. */
export const evaluated = (
  tenant: Pick<Tenant, 'key'>,
  runId: string,
  { timeout = 15_000, ...address }: { baseUrl?: string; timeout?: number } = {},
): Promise<Evaluation> =>
  vi.waitFor(
    async () => {
      const evaluation = await readEvaluation(tenant, runId, address)
      if (evaluation.result === 'pending') throw new Error('the evaluation is pending')
      return evaluation
    },
    { timeout, interval: 100 },
  )

/** The answer of a judge with one criterion. */
export const judgement = (
  { quote, met }: { quote: string; met: boolean },
  verdict = met ? 'met' : 'not_met',
  explanation = 'The output shows it.',
): string => JSON.stringify({ criteria: [{ quote, evidence: 'It says so.', met }], explanation, verdict })
