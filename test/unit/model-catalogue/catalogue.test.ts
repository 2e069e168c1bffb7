import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CATALOGUE_FILE, generateCatalogue } from '../../../scripts/generate-model-catalogue.ts'
import { CATALOGUE } from '../../../scripts/model-catalogue/catalogue.ts'
import { findEntry } from '../../../scripts/model-catalogue/find-entry.ts'
import type { Vendor } from '../../../scripts/model-catalogue/vendors.ts'

const model = (id: string, vendor: Vendor = id.startsWith('claude') ? 'anthropic' : 'openai') =>
  CATALOGUE.models.find((candidate) => candidate.id === id && candidate.vendor === vendor)

const VENDORS: readonly Vendor[] = [
  'openai',
  'anthropic',
  'aws',
  'google',
  'azure',
  'mistral',
  'groq',
  'x-ai',
  'deepseek',
  'together',
  'fireworks',
  'openrouter',
]

describe('model catalogue', () => {
  it('is what npm run generate:catalogue writes', () => {
    expect(generateCatalogue()).toBe(readFileSync(CATALOGUE_FILE, 'utf8'))
  })

  it('names the version of its source', () => {
    expect(CATALOGUE.source).toMatch(/^@pydantic\/genai-prices \d+\.\d+\.\d+$/)
  })

  it('has models of every vendor, each name once, with whole prices and limits', () => {
    expect(new Set(CATALOGUE.models.map(({ vendor }) => vendor))).toEqual(new Set(VENDORS))
    for (const vendor of VENDORS) {
      const names = CATALOGUE.models
        .filter((entry) => entry.vendor === vendor)
        .flatMap(({ id, names: others = [] }) => [id, ...others])
      expect(new Set(names).size, vendor).toBe(names.length)
    }
    for (const { id, contextWindow, maxOutputTokens, prices, regions = {}, later } of CATALOGUE.models) {
      const flat = [prices, ...(later ? [later.prices] : [])].flatMap((each) =>
        Object.values(each).flatMap((price) =>
          typeof price === 'number' ? [price] : Object.values<number>(price),
        ),
      )
      const numbers = [contextWindow, maxOutputTokens, ...flat, ...Object.values(regions)]
      for (const value of numbers) expect(Number.isSafeInteger(value) && value > 0, id).toBe(true)
      expect(maxOutputTokens).toBeLessThanOrEqual(contextWindow)
      expect(Object.values(prices).filter((price) => typeof price === 'number')).toHaveLength(5)
    }
  })

  it('has no model that does not answer in text', () => {
    const others = CATALOGUE.models.filter(({ id }) =>
      /audio|realtime|image|embed|whisper|tts|transcribe|moderation|llama-guard|sonic|voxtral|ocr|live|lyria/.test(
        id,
      ),
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

describe('models of other vendors', () => {
  it.each<[Vendor, string, string[]]>([
    ['aws', 'us.anthropic.claude-sonnet-4-5-20250929-v1:0', ['reasoning', 'json_schema', 'vision']],
    ['aws', 'anthropic.claude-opus-5', ['reasoning', 'adaptive_thinking', 'thinks_by_default', 'vision']],
    ['aws', 'amazon.nova-pro-v1:0', ['vision']],
    ['aws', 'eu.amazon.nova-2-lite-v1:0', ['reasoning', 'vision']],
    ['aws', 'openai.gpt-oss-120b-1:0', ['reasoning']],
    ['aws', 'qwen.qwen3-32b-v1:0', ['json_schema']],
    ['google', 'claude-sonnet-4-5@20250929', ['reasoning', 'vision']],
    ['google', 'gemini-3.1-pro-preview', ['reasoning', 'json_object', 'json_schema', 'vision']],
    ['azure', 'gpt-5.5', ['reasoning', 'tools_without_reasoning', 'json_object', 'json_schema', 'vision']],
    ['azure', 'claude-haiku-4-5', ['reasoning', 'json_schema', 'vision']],
    ['mistral', 'mistral-large-latest', ['json_object', 'json_schema', 'vision']],
    ['groq', 'openai/gpt-oss-20b', ['reasoning', 'json_object', 'json_schema']],
    ['deepseek', 'deepseek-v4-pro', ['reasoning', 'json_object']],
    ['openrouter', 'anthropic/claude-opus-5', ['reasoning', 'json_schema', 'vision']],
  ])('says what %s %s can do', (vendor, id, capabilities) => {
    expect(findEntry(vendor, id)?.capabilities).toEqual(capabilities)
  })

  // https://aws.amazon.com/bedrock/pricing, https://ai.google.dev/gemini-api/docs/pricing
  it('have prices of cached tokens, of long contexts and of sound', () => {
    expect(findEntry('aws', 'global.anthropic.claude-opus-4-7')).toMatchObject({
      maxOutputTokens: 128_000,
      prices: {
        input: 5_000_000,
        output: 25_000_000,
        cacheRead: 500_000,
        cacheWrite5Minutes: 6_250_000,
        cacheWrite1Hour: 10_000_000,
      },
    })
    expect(findEntry('google', 'gemini-2.5-pro')?.prices).toMatchObject({
      input: 1_250_000,
      cacheRead: 125_000,
      units: { audio_input: 1_250_000 },
      longContext: { above: 200_000, inputPercent: 200, outputPercent: 150 },
    })
    expect(findEntry('google', 'gemini-2.5-flash')?.prices.units).toEqual({ audio_input: 1_000_000 })
    expect(findEntry('x-ai', 'grok-4.6')?.prices.longContext).toEqual({
      above: 199_999,
      inputPercent: 200,
      outputPercent: 200,
    })
  })

  it('have no tools and classes of a vendor that resells them', () => {
    const sold = ['openai', 'anthropic', 'google']
    for (const { vendor, prices } of CATALOGUE.models) {
      if (!sold.includes(vendor)) expect([prices.units, prices.classes]).toEqual([undefined, undefined])
    }
  })
})
