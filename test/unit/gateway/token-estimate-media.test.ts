import { describe, expect, it } from 'vitest'
import { documentTokens as documentTokensInSlices } from '../../../src/gateway/token-count/document-tokens.ts'
import { imageSize } from '../../../src/gateway/token-count/image-size.ts'
import { imageRuleOf } from '../../../src/gateway/token-count/image-tokens.ts'
import { estimateInputTokens } from '../../../src/gateway/token-count/input-tokens.ts'
import { drained } from '../../../src/lib/slices.ts'

const base64 = (bytes: number[] | string): Uint8Array =>
  new TextEncoder().encode(Buffer.from(bytes as string, 'latin1').toString('base64'))
const big = (value: number, bytes: number): number[] =>
  Array.from({ length: bytes }, (_, index) => (value >>> (8 * (bytes - 1 - index))) & 0xff)
const little = (value: number, bytes: number): number[] => big(value, bytes).reverse()
const ascii = (text: string): number[] => [...text].map((letter) => letter.charCodeAt(0))

const png = (width: number, height: number): number[] => [
  ...[0x89, ...ascii('PNG'), 13, 10, 26, 10, 0, 0, 0, 13, ...ascii('IHDR')],
  ...[...big(width, 4), ...big(height, 4), 8, 6, 0, 0, 0],
]

const jpeg = (width: number, height: number, before: number[] = []): number[] => [
  ...[0xff, 0xd8, 0xff, 0xe0, ...big(16, 2), ...ascii('JFIF\0'), 1, 1, 0, 0, 1, 0, 1, 0, 0, ...before],
  ...[
    0xff,
    0xc4,
    ...big(5, 2),
    1,
    2,
    3,
    0xff,
    0xff,
    0xc2,
    ...big(17, 2),
    8,
    ...big(height, 2),
    ...big(width, 2),
    3,
  ],
]

const webp = (format: string, contents: number[]): number[] => [
  ...[...ascii('RIFF'), 0, 0, 0, 0, ...ascii('WEBP'), ...ascii(format), 0, 0, 0, 0, ...contents],
]

const documentTokens = (...input: Parameters<typeof documentTokensInSlices>): number =>
  drained(documentTokensInSlices(...input))

describe('the size of an image', () => {
  const exif = [0xff, 0xe1, ...big(60_002, 2), ...Array.from({ length: 60_000 }, () => 0xff)]
  it.each([
    ['PNG', png(1_920, 1_080)],
    ['GIF', [...ascii('GIF89a'), ...little(1_920, 2), ...little(1_080, 2), 0, 0, 0]],
    ['JPEG', jpeg(1_920, 1_080)],
    ['JPEG with a thumbnail', jpeg(1_920, 1_080, exif)],
    ['WebP, lossy', webp('VP8 ', [0, 0, 0, 0x9d, 0x01, 0x2a, ...little(1_920, 2), ...little(1_080, 2)])],
    ['WebP, lossless', webp('VP8L', [0x2f, ...little(1_919 | (1_079 << 14), 4)])],
    ['WebP, extended', webp('VP8X', [0, 0, 0, 0, ...little(1_919, 3), ...little(1_079, 3)])],
  ])('is read from a %s', (_name, bytes) => {
    expect(imageSize(base64(bytes))).toEqual({ width: 1_920, height: 1_080 })
  })

  it.each([
    ['nothing', base64('')],
    ['another kind of file', base64('%PDF-1.7 and so on')],
    ['a PNG that breaks off', base64(png(5, 5).slice(0, 12))],
    ['a PNG without pixels', base64(png(0, 7))],
    ['a JPEG without a frame', base64([0xff, 0xd8, 0xff, 0xe0, 0, 2, 0xff, 0xd9])],
    ['a JPEG whose segments lead nowhere', base64([0xff, 0xd8, ...Array.from({ length: 900 }, () => 0xff)])],
    ['base64 with escapes', new TextEncoder().encode('\\/9j\\/4AAQ')],
    ['no base64', new TextEncoder().encode('ÿØÿà')],
  ])('is unknown of %s', (_name, characters) => {
    expect(imageSize(characters)).toBeNull()
  })
})

describe('tokens of an image', () => {
  /** The vendor's examples: https://platform.openai.com/docs/guides/images-vision#calculating-costs */
  it.each([
    ['gpt-4o', 1_024, 1_024, 765],
    ['gpt-4o', 2_048, 4_096, 1_105],
    ['gpt-4o', 128, 64, 255],
    ['gpt-4.1', 1_024, 1_024, 765],
    ['gpt-4o-mini', 512, 512, 8_500],
    ['gpt-5', 1_024, 1_024, 630],
    ['o3', 1_024, 1_024, 675],
    ['gpt-4.1-mini', 1_024, 1_024, 1_659],
    ['gpt-4.1-nano', 1_024, 1_024, 2_520],
    ['o4-mini', 1_024, 1_024, 1_762],
    ['gpt-5.6', 1_600, 1_600, 3_000],
    ['claude-opus-4.7', 2_576, 1_440, 4_792],
  ])('for %s of %i by %i', (model, width, height, tokens) => {
    expect(imageRuleOf(model)({ width, height })).toBe(tokens)
  })

  it.each([
    'gpt-4o',
    'gpt-4o-mini',
    'gpt-5',
    'gpt-5.6',
    'gpt-4.1-nano',
    'gemini-2.5-pro',
    'qwen3-vl',
    'house-model',
  ])('of unknown size are the most that %s charges', (model) => {
    const rule = imageRuleOf(model)
    for (const [width, height] of [
      [1, 1],
      [8_000, 8_000],
      [20_000, 300],
      [300, 20_000],
      [768, 2_048],
    ] as const) {
      expect(rule({ width, height })).toBeGreaterThan(0)
      expect(rule(null)).toBeGreaterThanOrEqual(rule({ width, height }))
    }
  })
})

describe('tokens of a PDF file', () => {
  const rule = imageRuleOf('gpt-4o')
  const page = 2_000 + rule({ width: 1_545, height: 2_000 })
  const filler = (bytes: number): string => 'x'.repeat(bytes)

  it.each([
    ['a page tree', `%PDF-1.4 ${filler(90_000)} << /Type /Pages /Kids [] /Count 12 >> ${filler(90_000)}`, 12],
    [
      'pages one by one',
      `<< /Type /Page /A 1 >>${filler(400_000)}<</Type/Page/Parent 1>>${filler(9)}/Type /Pages`,
      2,
    ],
    ['a linearized file', `<< /Linearized 1 /L 9 /H [ 1 2 ] /O 3 /E 4 /N 37 /T 5 >>${filler(50_000)}`, 37],
  ])('go by its pages: %s', (_name, file, pages) => {
    expect(documentTokens(base64(file), rule)).toBe(pages * page)
  })

  it('find a mark wherever the file is cut for decoding', () => {
    for (let shift = 0; shift < 80; shift++) {
      const file = `${filler(49_152 - 40 + shift)}/Type /Page ${filler(100)}`
      expect(documentTokens(base64(file), rule)).toBe(page)
    }
  })

  it('go by its bytes where it does not tell', () => {
    expect(documentTokens(base64(filler(30_000)), rule)).toBe(30_000)
    expect(documentTokens(base64(filler(500)), rule)).toBe(page)
    expect(documentTokens(base64(filler(3_000_000)), rule)).toBe(100 * page)
    expect(documentTokens(new TextEncoder().encode('not base64!'.repeat(100)), rule)).toBe(page)
  })
})

describe('media in a request', () => {
  const count = (content: unknown, upstreamModel = 'gpt-4o'): number =>
    drained(
      estimateInputTokens(
        new TextEncoder().encode(JSON.stringify({ messages: [{ role: 'user', content }] })),
        upstreamModel,
      ),
    )
  const data = (bytes: number[] | string): string => new TextDecoder().decode(base64(bytes))
  const imageOf = (contents: string) => ({
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: contents },
  })
  const image = imageOf(data([...png(1_024, 1_024), ...Array.from({ length: 60 }, () => 7)]))
  const frame = count([])

  it('count by their size, in messages and in results', () => {
    expect(count([image])).toBe(frame + 765)
    const result = { type: 'tool_result', tool_use_id: 'toolu_01', content: [image] }
    expect(count([result])).toBe(frame + 765)
  })

  it('count as the largest where the size is not told', () => {
    const link = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }
    const most = imageRuleOf('gpt-4o')(null)
    expect(count([link])).toBe(frame + most)
    expect(count([imageOf(data('HEIC'.repeat(50_000)))])).toBe(frame + most)
  })

  it('of text count as text', () => {
    const source = { type: 'text', media_type: 'text/plain', data: 'The quick brown fox. '.repeat(200) }
    const asText = count(source.data)
    expect(count([{ type: 'document', source }])).toBe(asText)
    expect(count([{ type: 'document', source, title: 'Foxes' }])).toBeGreaterThan(asText)
    const inner = { type: 'content', content: [{ type: 'text', text: source.data }, image] }
    expect(count([{ type: 'document', source: inner }])).toBe(asText + 765)
  })

  it('never count their base64 as text', () => {
    const file = data(`%PDF-1.7 /Type /Page ${'x'.repeat(2_000_000)}`)
    const block = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: file } }
    expect(count([block])).toBeLessThan(5_000)
    expect(count([block], 'house-model')).toBeLessThan(20_000)
  })
})
