import { describe, expect, it } from 'vitest'
import { post, register, useUpstream } from './model-upstream-harness.ts'
import {
  adaptive,
  asking,
  budget,
  heard,
  type Json,
  refusalOf,
  result,
  said,
  text,
  tool,
} from './model-upstream-requests.ts'

useUpstream()

describe('thinking blocks', () => {
  const first = async (more: Json = {}): Promise<Json[]> => {
    const answer = await post('/v1/messages', 'script:thinking-tools', { ...budget, tools: [tool], ...more })
    return ((await answer.json()) as { content: Json[] }).content
  }
  const goOn = (content: Json[], more: Json = {}) => {
    const call = content.find(({ type }) => type === 'tool_use')
    const messages = [asking, { role: 'assistant', content }, heard(result(String(call?.id)))]
    return post('/v1/messages', '', { ...budget, tools: [tool], messages, ...more })
  }

  it('come back as they were issued, the text left out or not', async () => {
    const content = await first()
    expect((await goOn(content)).status).toBe(200)
    const omitted = content.map((block) => (block.type === 'thinking' ? { ...block, thinking: '' } : block))
    expect((await goOn(omitted)).status).toBe(200)
  })

  it.each<[string, string, (content: Json[]) => Json[]]>([
    [
      'with a signature of somebody else',
      'Invalid `signature` in `thinking` block',
      ([thought = {}, ...rest]) => [{ ...thought, signature: 'EqQBsignature' }, ...rest],
    ],
    [
      'with another text',
      'Invalid `signature`',
      ([thought = {}, ...rest]) => [{ ...thought, thinking: 'something else' }, ...rest],
    ],
    [
      'without signature',
      'thinking.signature: Field required',
      ([{ signature: _, ...thought } = {}, ...rest]) => [thought, ...rest],
    ],
    [
      'with made-up data',
      'Invalid `data` in `redacted_thinking` block',
      (content) => [{ type: 'redacted_thinking', data: 'x' }, ...content],
    ],
    [
      'behind the text',
      'the first block must be `thinking` or `redacted_thinking`',
      ([thought = {}, words = {}, ...rest]) => [words, thought, ...rest],
    ],
    [
      'not at all',
      'Expected `thinking` or `redacted_thinking`, but found `text`',
      (content) => content.filter(({ type }) => type !== 'thinking'),
    ],
    [
      'with a cache marker',
      'thinking.cache_control: Extra inputs',
      ([thought = {}, ...rest]) => [{ ...thought, cache_control: { type: 'ephemeral' } }, ...rest],
    ],
  ])('are refused %s', async (_, reason, change) => {
    expect((await refusalOf(await goOn(change(await first())))).message).toContain(reason)
  })

  it('begin every call of a tool, whatever the script', async () => {
    const answer = await post('/v1/messages', 'script:empty-arguments', { ...budget, tools: [tool] })
    const { content } = (await answer.json()) as { content: Json[] }
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'tool_use'])
    expect((await goOn(content)).status).toBe(200)
  })

  it('need not come back where thinking is adaptive', async () => {
    const content = (await first()).filter(({ type }) => type !== 'thinking')
    expect((await goOn(content, { model: adaptive, thinking: { type: 'adaptive' } })).status).toBe(200)
  })

  it('count as issued when a registered script has them', async () => {
    const event = {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'signature_delta', signature: 'recorded-signature' },
    }
    const turn = (signature: string) => ({
      messages: [asking, said({ type: 'thinking', thinking: 'so', signature }, text('well')), asking],
    })
    await refusalOf(await post('/v1/messages', '', turn('recorded-signature')))
    await register('recorded', { steps: [{ sse: [`event: x\ndata: ${JSON.stringify(event)}\n\n`] }] })
    expect((await post('/v1/messages', '', turn('recorded-signature'))).status).toBe(200)
  })
})
