import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CATALOGUE_FILE, generateCatalogue } from '../../scripts/generate-model-catalogue.ts'

const text = readFileSync(CATALOGUE_FILE, 'utf8')
const catalogue = JSON.parse(text) as {
  source: string
  models: Array<{
    id: string
    provider: string
    contextWindow: number
    maxOutputTokens: number
    prices: Record<string, number | Record<string, number>>
    capabilities: string[]
  }>
}

const model = (id: string) => catalogue.models.find((candidate) => candidate.id === id)

describe('model catalogue', () => {
  it('is what npm run generate:catalogue writes', () => {
    expect(generateCatalogue()).toBe(text)
  })

  it('names the version of its source', () => {
    expect(catalogue.source).toMatch(/^@pydantic\/genai-prices \d+\.\d+\.\d+$/)
  })

  it('has current models of both vendors, each once, with whole prices and limits', () => {
    const ids = catalogue.models.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(new Set(catalogue.models.map(({ provider }) => provider))).toEqual(
      new Set(['openai', 'anthropic']),
    )
    for (const { contextWindow, maxOutputTokens, prices } of catalogue.models) {
      const flat = Object.values(prices).flatMap((price) =>
        typeof price === 'number' ? [price] : Object.values(price),
      )
      const numbers = [contextWindow, maxOutputTokens, ...flat]
      for (const value of numbers) expect(Number.isSafeInteger(value) && value > 0).toBe(true)
      expect(maxOutputTokens).toBeLessThanOrEqual(contextWindow)
      expect(Object.values(prices).filter((price) => typeof price === 'number')).toHaveLength(5)
    }
  })

  it('has no model that does not answer in text', () => {
    const others = catalogue.models.filter(({ id }) =>
      /audio|realtime|image|embedding|whisper|tts|transcribe|moderation|instruct/.test(id),
    )
    expect(others).toEqual([])
  })

  it.each([
    ['gpt-4o', ['json_object', 'json_schema', 'vision']],
    ['gpt-5.3', ['json_object', 'json_schema', 'vision']],
    ['gpt-5.5', ['reasoning', 'tools_without_reasoning', 'json_object', 'json_schema', 'vision']],
    ['gpt-6-sol', ['reasoning', 'tools_without_reasoning', 'json_object', 'json_schema', 'vision']],
    ['gpt-5.2', ['reasoning', 'json_object', 'json_schema', 'vision']],
    ['o3-mini', ['reasoning', 'json_object', 'json_schema']],
    ['claude-opus-4-1', ['reasoning', 'vision']],
    ['claude-haiku-4-5', ['reasoning', 'json_schema', 'vision']],
    ['claude-sonnet-4-6', ['reasoning', 'adaptive_thinking', 'json_schema', 'vision']],
    ['claude-opus-5', ['reasoning', 'adaptive_thinking', 'thinks_by_default', 'json_schema', 'vision']],
  ])('says what %s can do', (id, capabilities) => {
    expect(model(id)?.capabilities).toEqual(capabilities)
  })

  // https://openai.com/api/pricing and https://claude.com/pricing, dollars for a million tokens.
  it('converts dollars to micro-credits', () => {
    expect(model('gpt-4o')?.prices).toEqual({
      input: 2_500_000,
      output: 10_000_000,
      cacheRead: 1_250_000,
      cacheWrite5Minutes: 2_500_000,
      cacheWrite1Hour: 2_500_000,
      units: { web_search: 25_000_000_000 },
      classes: { 'service_tier=priority': 170 },
    })
    expect(model('claude-haiku-4-5')?.prices).toEqual({
      input: 1_000_000,
      output: 5_000_000,
      cacheRead: 100_000,
      cacheWrite5Minutes: 1_250_000,
      cacheWrite1Hour: 2_000_000,
      units: { web_search: 10_000_000_000, container_minutes: 833_333_334 },
    })
    const longContext = { inputPercent: 200, outputPercent: 150 }
    expect(model('gpt-5.5')?.prices.longContext).toEqual({ above: 271_999, ...longContext })
    expect(model('claude-sonnet-4-5')?.prices.longContext).toEqual({ above: 200_000, ...longContext })
  })

  // Prices on the vendors' pages and in the price file of litellm 1.109.1, 2026-11-22.
  it.each([
    ['gpt-4o-mini', { 'service_tier=priority': 167 }],
    ['gpt-5', { 'service_tier=priority': 200, 'service_tier=flex': 50 }],
    ['gpt-5-nano', { 'service_tier=flex': 50 }],
    ['gpt-5.4', { 'service_tier=priority': 200, 'service_tier=flex': 52 }],
    ['gpt-5.5', { 'service_tier=priority': 250, 'service_tier=flex': 50 }],
    ['gpt-6-sol', { 'service_tier=priority': 200, 'service_tier=flex': 50 }],
    ['o4-mini', { 'service_tier=priority': 182, 'service_tier=flex': 51 }],
    ['claude-opus-4-5', undefined],
    ['claude-opus-4-6', { 'inference_geo=us': 110 }],
    ['claude-opus-4-8', { 'speed=fast': 200, 'inference_geo=us': 110 }],
    ['claude-opus-5-5', { 'speed=fast': 200, 'inference_geo=us': 110 }],
    ['claude-sonnet-5', { 'inference_geo=us': 110 }],
  ])('has the price classes of %s', (id, classes) => {
    expect(model(id)?.prices.classes).toEqual(classes)
  })
})
