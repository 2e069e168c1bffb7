import { describe, expect, it } from 'vitest'
import {
  findEntry,
  percentOfPrices,
  pricesOn,
  regionPercent,
  vendorOf,
} from '../../../scripts/model-catalogue/find-entry.ts'

const BEDROCK = 'https://bedrock-runtime.us-east-1.amazonaws.com'
const SONNET = 'anthropic.claude-sonnet-4-5-20250929-v1:0'
const PROFILE = `arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.${SONNET}`

describe('the catalogue entry of a route', () => {
  it.each([
    ['bedrock', BEDROCK, SONNET, SONNET, 110],
    ['bedrock', BEDROCK, `us.${SONNET}`, SONNET, 110],
    ['bedrock', BEDROCK, `global.${SONNET}`, SONNET, 100],
    ['bedrock', BEDROCK, PROFILE, SONNET, 110],
    ['bedrock', BEDROCK, 'global.anthropic.claude-opus-4-6-v1:0', 'anthropic.claude-opus-4-6-v1', 100],
    ['bedrock', BEDROCK, 'eu.amazon.nova-pro-v1:0', 'amazon.nova-pro-v1:0', 132],
    ['bedrock', BEDROCK, 'us.amazon.nova-pro-v1:0', 'amazon.nova-pro-v1:0', 100],
    ['bedrock', BEDROCK, 'jp.amazon.nova-2-lite-v1:0', 'amazon.nova-2-lite-v1:0', 133],
    ['vertex', 'https://aiplatform.googleapis.com', 'claude-sonnet-4-5@20250929', 'claude-sonnet-4-5', 100],
    ['vertex', 'https://us-east5-aiplatform.googleapis.com', 'claude-sonnet-4-5', 'claude-sonnet-4-5', 110],
    ['vertex', 'https://aiplatform.eu.rep.googleapis.com', 'claude-opus-4-8@default', 'claude-opus-4-8', 110],
    ['vertex', 'https://us-east5-aiplatform.googleapis.com', 'gemini-2.5-pro', 'gemini-2.5-pro', 100],
    ['gemini', 'https://generativelanguage.googleapis.com', 'gemini-3.5-flash', 'gemini-3.5-flash', 100],
    [
      'gemini-openai',
      'https://generativelanguage.googleapis.com',
      'models/gemini-2.5-pro',
      'gemini-2.5-pro',
      100,
    ],
    ['xai', 'https://api.x.ai/v1', 'grok-latest', 'grok-4.5', 100],
    ['anthropic', 'https://api.anthropic.com', 'claude-haiku-4-5-20251001', 'claude-haiku-4-5', 100],
    ['openai-compatible', 'https://api.openai.com/v1', 'gpt-4o-2024-08-06', 'gpt-4o', 100],
  ])('%s %s %s', (kind, baseUrl, upstreamModel, id, percent) => {
    const vendor = vendorOf(kind, baseUrl)
    const found = vendor && findEntry(vendor, upstreamModel)
    expect(found?.id).toBe(id)
    expect(found && regionPercent(found, { kind, baseUrl, upstreamModel })).toBe(percent)
  })

  it.each([
    ['bedrock', 'global.anthropic.claude-sonnet-5-6'],
    ['bedrock', 'anthropic.claude-sonnet-4-5-20250929-v2:0'],
    ['bedrock', 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123'],
    ['openai-compatible', 'gpt-4o-2024-05-13'],
    ['mistral', 'mistral-large'],
    ['fireworks', 'kimi-k3'],
  ])('is not that of another model: %s %s', (kind, id) => {
    const vendor = vendorOf(kind, 'https://api.openai.com/v1')
    expect(vendor && findEntry(vendor, id)).toBeUndefined()
  })

  it('is none for servers and addresses of no vendor', () => {
    expect(vendorOf('ollama', 'http://127.0.0.1:11434/v1')).toBeNull()
    expect(vendorOf('openai-compatible', 'https://api.openai.com.example/v1')).toBeNull()
  })

  it('has the prices of the day', () => {
    const found = findEntry('google', 'gemini-3.8-flash')
    const on = (day: string) => found && pricesOn(found, day).input
    expect([on('2026-12-31'), on('2027-01-01')]).toEqual([750_000, 1_500_000])
  })

  it('makes a percentage of other prices, by the dearer of input and output', () => {
    const prices = (input: number, output: number) => ({
      ...{ input, output, cacheRead: 1, cacheWrite5Minutes: 1, cacheWrite1Hour: 1 },
    })
    expect(percentOfPrices(prices(3, 15), 110, prices(3, 15))).toBe(110)
    expect(percentOfPrices(prices(3, 20), 100, prices(3, 15))).toBe(134)
    expect(percentOfPrices(prices(1, 5), 100, prices(3, 15))).toBe(34)
  })
})
