import { describe, expect, it } from 'vitest'
import { drained } from '../../../../src/lib/slices.ts'
import type { WebPage } from '../../../../src/responses/tools/web/load-page.ts'
import { findInPage, listLinks, pageWindow } from '../../../../src/responses/tools/web/page-window.ts'

const pageOf = (text: string, links: WebPage['links'] = [], cut = false): WebPage => ({
  ...{ url: 'https://a.example/', title: '', text, links, cut },
})
const find = (text: string, pattern: string) => drained(findInPage(pageOf(text), pattern))

describe('a window of a page', () => {
  it('has the addresses of the links in it', () => {
    const links = [1, 2, 3].map((number) => ({ url: `https://a.example/${number}`, text: '' }))
    expect(pageWindow(pageOf('a [3] b [1] c [3] d [9]', links), 0).text).toBe(
      'a [3] b [1] c [3] d [9]\n\n[3]: https://a.example/3\n[1]: https://a.example/1',
    )
  })

  it('has a limited number and length of addresses, and says how many are left out', () => {
    const linked = (url: (number: number) => string) => {
      const links = Array.from({ length: 150 }, (_, index) => ({ url: url(index), text: '' }))
      return pageWindow(pageOf(links.map((_, index) => `[${index + 1}]`).join(' '), links), 0)
    }
    const many = linked((number) => `https://a.example/${number}`)
    expect(many.text.match(/^\[\d+\]: /gm)).toHaveLength(100)
    expect(many.note).toMatch(/ 50 addresses of links are left out; page_links lists them\.$/)
    const long = linked((number) => `https://a.example/${number}${'x'.repeat(1_900)}`)
    expect(long.text.match(/^\[\d+\]: /gm)).toHaveLength(4)
    expect(long.text.length).toBeLessThan(9_000)
    expect(long.note).toContain(' 146 addresses of links are left out')
  })

  it('says what it shows', () => {
    expect(pageWindow(pageOf('abc'), 0).note).toBe('Characters 0 to 3 of 3.')
    expect(pageWindow(pageOf('abc', [], true), 1).note).toBe(
      'Characters 1 to 3 of 3. The page is longer than can be read here.',
    )
    expect(pageWindow(pageOf(''), 0).note).toBe('The page has no text that can be read here.')
    expect(pageWindow(pageOf('abc'), 9).note).toBe('Characters 3 to 3 of 3.')
  })

  it('does not cut a character', () => {
    const text = `${'x'.repeat(19_999)}😀y`
    const first = pageWindow(pageOf(text), 0)
    expect(first.text).toBe('x'.repeat(19_999))
    expect(first.note).toContain('offset 19999')
    expect(pageWindow(pageOf(text), 20_000).text).toBe('😀y')
  })
})

describe('a text in a page', () => {
  it('is found at every place once, over the bounds of slices too', () => {
    const needle = 'over the bound'
    for (const at of [0, 32 * 1024 - 5, 32 * 1024, 40_000]) {
      const { note, text } = find(`${'-'.repeat(at)}${needle}${'-'.repeat(40_000)}`, needle)
      expect([note, text.startsWith(`Offset ${at}: …`)]).toEqual(['1 match.', true])
    }
    expect(find('ab '.repeat(20), 'ab').note).toBe('20 matches.')
    expect(find('ab '.repeat(21), 'ab').note).toBe('The first 20 matches.')
  })

  it('is no pattern', () => {
    expect(find('a.c (b)* abc', '.c (B)*').note).toBe('1 match.')
    expect(find('abc', 'a.c').note).toBe('The text is not in the page.')
  })

  it('is searched in slices', () => {
    const searching = findInPage(pageOf('a'.repeat(1_000_000)), `${'a'.repeat(199)}b`)
    let slices = 0
    while (!searching.next().done) slices++
    expect(slices).toBe(Math.ceil(1_000_000 / (32 * 1024)))
  })
})

it('links are found by text and address', () => {
  const links = Array.from({ length: 300 }, (_, index) => ({
    url: `https://a.example/${index}`,
    text: 'Text',
  }))
  expect(listLinks(pageOf('', links), '').note).toBe(
    '200 of 300 links. 100 are left out; a filter shows others.',
  )
  expect(listLinks(pageOf('', links), 'EXAMPLE/299').text).toBe('[300] Text: https://a.example/299')
})

it('a list of links with long addresses is limited, and says how many are left out', () => {
  const links = Array.from({ length: 300 }, (_, index) => ({
    url: `https://a.example/${index}${'x'.repeat(1_900)}`,
    text: `Text ${index}`,
  }))
  const { text, note } = listLinks(pageOf('', links), '')
  expect(text.length).toBeLessThan(20_000)
  expect(note).toBe('10 of 300 links. 290 are left out; a filter shows others.')
  expect(listLinks(pageOf('', links), 'text 299').note).toBe('1 of 1 links.')
})
