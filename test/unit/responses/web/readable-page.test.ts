import { describe, expect, it } from 'vitest'
import { drained } from '../../../../src/lib/slices.ts'
import { readablePage } from '../../../../src/responses/tools/web/html/readable-page.ts'

const URL_OF_PAGE = 'https://a.example/guide/page'
const read = (html: string) => drained(readablePage(html, URL_OF_PAGE))
const text = (html: string) => read(html).text
const long = 'A sentence of the article. '.repeat(10).trim()

describe('the text of a page', () => {
  it.each([
    ['headings and paragraphs', '<h1>A</h1><h3>B</h3><p>c<p>d', '# A\n\n### B\n\nc\n\nd'],
    ['inline elements', '<p>a <b>bold</b><i>er</i> <code>x &lt; y</code>.', 'a bolder `x < y`.'],
    ['line breaks', 'a<br>b<br/>c<hr>d', 'a\nb\nc\n\nd'],
    ['line breaks before a text', '<p><br>a<p> <br> b', 'a\n\nb'],
    ['white space', '<p>  a\n\t b  </p>\n<p> c', 'a b\n\nc'],
    ['lists', '<ul><li>a<li>b<ol start=3><li>c<li>d</ol></ul>e', '- a\n- b\n  3. c\n  4. d\n\ne'],
    ['paragraphs in items', '<ul><li><p>a</p><p>b</p></ul>', '- a\n\n  b'],
    ['quotes', '<blockquote><p>a<blockquote>b</blockquote></blockquote>', '> a\n\n> > b'],
    ['code', '<pre><code>\n a\n\n  b &amp;\n</code></pre>', '```\n a\n\n  b &\n```'],
    ['code with fences', '<pre>```</pre>', '~~~~\n```\n~~~~'],
    ['tables', '<table><tr><th>a<th>b<tr><td><p>1</p><td>2<br>3</table>', '| a | b\n| 1 | 2 3'],
    [
      'references',
      '&copy;&nbsp;&#8364;&#x20AC;&#128;&eacute;&Omega;&nosuch;&amp &nGt;',
      '©\u00a0€€€éΩ&nosuch;& ≫⃒',
    ],
    ['broken tags', 'a < b <3 <p class="x>c</p>d', 'a < b <3'],
    ['comments and declarations', '<!doctype html>a<!-- <p>b --><!-->c<?xml x?>d', 'acd'],
    ['text after a drawing', `<p>a</p><svg>${'<path/>'.repeat(600)}</svg><p>b</p>`, 'a\n\nb'],
    ['text after an empty title of a drawing', '<p>a<svg><title/><path/></svg>b', 'ab'],
    [
      'text after hidden elements of the greatest depth',
      `<p>a</p><div>${'<b>'.repeat(600)}x<b hidden>h</b>y${'</b>'.repeat(600)}</div><p>b</p>`,
      'a\n\nxy\n\nb',
    ],
    ['scripts and styles', 'a<script>"</p>"<p>b</script><STYLE>c</style >d<noscript>e</noscript>f', 'adf'],
    ['a script without an end', 'a<script>b<p>c', 'a'],
    [
      'other content',
      'a<svg><text>b</text></svg><template>c</template><select><option>d</select>e',
      'a\n\ne',
    ],
  ])('has its %s', (_name, html, expected) => {
    expect(text(html)).toBe(expected)
  })

  it.each([
    ['hidden', '<p hidden>x</p>'],
    ['aria-hidden', '<p aria-hidden=true>x</p>'],
    ['display: none', '<p style="color:red; DISPLAY : none !important">x</p>'],
    ['visibility: hidden', '<p style="visibility:hidden">x</p>'],
    ['opacity: 0', '<p style="opacity:0.0">x</p>'],
    ['font-size: 0', '<p style="font-size: 0">x</p>'],
    ['font-size: 1px', '<p style="font-size:.5px;">x</p>'],
    ['transparent', '<p style="color:transparent">x</p>'],
    ['off the screen', '<p style="position:absolute;left:-9999px">x</p>'],
    ['without a size', '<p style="overflow:hidden;height:0px">x</p>'],
    ['opacity: 0 in another form', '<p style="opacity : 0e1 ! important ; color: red">x</p>'],
    ['a clipped area', '<p style="clip:rect( 0 , 0, 0, 0)">x</p>'],
    ['a clipped path', '<p style="CLIP-PATH: inset( 50% )">x</p>'],
    ['a scale of 0', '<p style="transform: scale( 0 )">x</p>'],
    ['a text outside of its box', '<p style="text-indent:-999em">x</p>'],
    ['escaped styles', '<p style="d\\69splay:none">x</p>'],
    ['commented styles', '<p style="display/**/:none">x</p>'],
    ['a class of screen readers', '<p class="big sr-only">x</p>'],
    ['a closed dialog', '<dialog>x</dialog>'],
    ['elements in hidden ones', '<div hidden><p>x</p><div>x</div></div>'],
    ['wrongly nested', '<span hidden><div></span>x</div></span>'],
    ['comments', '<!-- x -->'],
    ['attributes', '<img alt="x" title="x"><meta name=description content=x>'],
    ['too deep', `${'<div>'.repeat(600)}x${'</div>'.repeat(600)}`],
  ])('has nothing that a person does not see: %s', (_name, html) => {
    expect(text(`<p>a</p>${html}<p>b</p>`)).toBe('a\n\nb')
  })

  it.each([
    'opacity:0.5',
    'font-size:.9em',
    'min-width:0',
    'left:-10px',
    'display:block',
    'font-size:10px',
    'text-indent:-10px',
  ])('has what is visible with %s', (style) => {
    expect(text(`<p style="${style}">x</p>`)).toBe('x')
  })

  it('has characters that are visible', () => {
    expect(text('<p>a&#8203;b&#x202e;c&#917569;</p>')).toBe('abc')
  })

  it('is the same wherever a tag, a reference or a character is cut by the reader', () => {
    const html =
      '<p title="a>b" style=\'opacity:0\'>h</p><p>x &amp;&#128512;😀 <!-- c --> y</p><script>z</scrip></script>w'
    const expected = text(html)
    expect(expected).toBe('x &😀😀 y\n\nw')
    for (let before = 4_096 - html.length; before <= 4_096; before++) {
      expect(text(`${' '.repeat(before)}${html}`)).toBe(expected)
    }
    expect(text(`${'x'.repeat(32 * 1_024 - 1)}\u{e0041}y`)).toMatch(/xy$/)
  })

  it('is that of the main element, else of the article, else without navigation', () => {
    const beside = '<header>H</header><nav>N</nav><aside>A</aside><footer>F</footer>'
    expect(text(`${beside}<p>other</p><main><header>h</header>${long}</main>`)).toBe(`h\n\n${long}`)
    expect(text(`${beside}<p>other</p><article>${long}</article>`)).toBe(long)
    expect(text(`${beside}<p>${long}</p>`)).toBe(long)
    expect(text(`${beside}<main>short</main>`)).toContain('N')
  })

  it('is cut where it is too long', () => {
    const page = read(`<p>${'x'.repeat(3_000_000)}`)
    expect(page.cut).toBe(true)
    expect(page.text.length).toBeLessThan(1_100_000)
    expect(read('<p>x').cut).toBe(false)
  })
})

describe('the title and the links of a page', () => {
  it('are there with their numbers', () => {
    const page = read(
      '<title> A &amp;\n B </title><a href="x?a=1&amp;b=2#c">one</a> <a href=/y>two</a> <a href="x?a=1&b=2">again</a>',
    )
    expect(page.title).toBe('A & B')
    expect(page.text).toBe('one [1] two [2] again [1]')
    expect(page.links).toEqual([
      { url: 'https://a.example/guide/x?a=1&b=2', text: 'one' },
      { url: 'https://a.example/y', text: 'two' },
    ])
  })

  it('follow the base of the page', () => {
    expect(
      read('<base href="https://b.example/c/"><base href="https://d.example/"><a href=x>l</a>').links,
    ).toEqual([{ url: 'https://b.example/c/x', text: 'l' }])
  })

  it.each([
    'javascript:alert(1)',
    'mailto:a@b.example',
    'data:text/html,x',
    '#part',
    'https://u:p@a.example/',
    'http://',
  ])('are not numbered where they cannot be opened: %s', (href) => {
    const page = read(`<a href="${href}">text</a>`)
    expect([page.text, page.links]).toEqual(['text', []])
  })

  it('without a text have no number in the text', () => {
    expect(text('<p>a<a href=x><img></a>b')).toBe('ab')
  })

  it('with blocks in them keep their number', () => {
    expect(text('<a href=x><h2>Head</h2><p>more</p></a>')).toBe('## Head\n\nmore [1]')
  })

  it('are limited', () => {
    const many = Array.from({ length: 3_000 }, (_, index) => `<a href="/${index}">l</a>`).join('')
    expect(read(many).links).toHaveLength(2_000)
  })

  it('are parsed up to a limited length together, known ones too', () => {
    const anchors = '<a href=same>l</a> '.repeat(3_000)
    const { text } = read(`<base href="https://b.example/${'x'.repeat(1_900)}/">${anchors}`)
    const numbered = text.split('[1]').length - 1
    expect(numbered).toBeGreaterThan(500)
    expect(numbered).toBeLessThan(600)
  })

  it('have addresses of limited length together', () => {
    const anchors = Array.from({ length: 2_000 }, (_, number) => `<a href=${number}>l</a>`).join(' ')
    const { links } = read(`<base href="https://b.example/${'x'.repeat(1_900)}/">${anchors}`)
    const characters = links.reduce((sum, { url }) => sum + url.length, 0)
    expect(characters).toBeGreaterThan(250 * 1024)
    expect(characters).toBeLessThanOrEqual(256 * 1024)
  })
})

/** The numbers of characters that single slices have read, of a page of a megabyte. */
function slices(unit: string): number {
  const reading = readablePage(unit.repeat(Math.ceil(1_000_000 / unit.length)), URL_OF_PAGE)
  let count = 0
  while (!reading.next().done) count++
  return count
}

describe('the work on a page', () => {
  it.each([
    '<div>',
    '<b>',
    '<p>x</p>',
    '</div>',
    '<a href="/x">l</a>',
    'word ',
    '&amp;',
    '<ul><li>',
    '<table><tr><td>x',
  ])('is done in slices for %s', (unit) => {
    // At least one slice for each 64 K steps; the limit of text ends the page before its end.
    expect(slices(unit)).toBeGreaterThan(10)
  })

  it.each([
    ['attributes', `<p ${'a '.repeat(2_000_000)}`],
    ['a quote without an end', `<p a="${'x'.repeat(4_000_000)}`],
    ['a comment without an end', `<!--${'-'.repeat(4_000_000)}`],
    ['tags without an end', '<a '.repeat(1_500_000)],
    ['white space', `<pre>${' '.repeat(500_000)}x`],
  ])('ends for %s', (_name, html) => {
    expect(read(html).text.length).toBeLessThan(1_100_000)
  })
})
