import { StartError } from '../node/start-error.ts'
import { DELTAS, type Scenario, scriptName } from './scenarios.ts'

/**
 * Registers the answer of each scenario at the upstream. A streamed one is cut into its frames, and each leaves as a
 * packet of its own, as from a model that writes token by token.
 */
export async function prepareAnswers(upstream: string, scenarios: Scenario[]): Promise<Scenario[]> {
  const prepared: Scenario[] = []
  for (const scenario of scenarios) {
    prepared.push(scenario.baseline.body === undefined ? scenario : await prepareAnswer(upstream, scenario))
  }
  return prepared
}

async function prepareAnswer(upstream: string, scenario: Scenario): Promise<Scenario> {
  const { steps, events } = await recordAnswer(upstream, scenario)
  const response = await fetch(`${upstream}/control/scripts/${scriptName(scenario)}`, {
    method: 'PUT',
    body: JSON.stringify({ steps }),
  })
  await expectSuccess(response, 'registering an answer')
  return { ...scenario, events }
}

/**
 * Takes the answer from the upstream's own scripts, once. A streamed chat requests its usage, because the gateway always
 * does.
 */
async function recordAnswer(upstream: string, scenario: Scenario) {
  const { stream, pace, baseline } = scenario
  const script = stream ? `long-stream tokens=${DELTAS}` : 'canned'
  const text = (baseline.body ?? '').replace(`script:${scriptName(scenario)}`, `script:${script}`)
  const { stream_options: options = { include_usage: true }, ...rest } = JSON.parse(text)
  const withUsage = stream && baseline.path === '/v1/chat/completions'
  const body = JSON.stringify({ ...rest, ...(withUsage && { stream_options: options }) })
  const response = await fetch(upstream + baseline.path, { method: 'POST', headers: baseline.headers, body })
  await expectSuccess(response, 'recording an answer')
  const answer = await response.text()
  const headers = { 'content-type': response.headers.get('content-type') ?? '' }
  if (!stream) return { steps: [{ status: 200, headers, body: answer }], events: 0 }
  const frames = answer.split(/(?<=\n\n)/)
  const sent =
    pace === null
      ? [{ sse: frames }]
      : frames.flatMap((frame) => [{ sse: [frame] }, { waitMilliseconds: pace }]).slice(0, -1)
  return { steps: [{ status: 200, headers }, ...sent], events: frames.length }
}

export async function expectSuccess(response: Response, what: string): Promise<void> {
  if (!response.ok) throw new StartError(`${what}: status ${response.status}`)
}
