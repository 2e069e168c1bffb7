import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { checkEgress, EgressError, safeFetch } from '../../../src/lib/safe-fetch.ts'

describe('checkEgress', () => {
  it.each([
    'https://api.openai.com/v1/chat/completions',
    'https://API.OpenAI.com/v1',
    'https://api.openai.com:443/v1',
    'https://api.openai.com./v1',
    'https://8.8.8.8/',
    'https://[2606:4700::6810:85e5]/',
    'https://[::ffff:8.8.8.8]/',
    'https://xn--bcher-kva.example/',
    'https://notlocalhost.com/',
    'https://localhost.example.com/',
    'https://internal.example.com/',
  ])('allows %s', (address) => {
    expect(checkEgress(address, []).href).toBe(new URL(address).href)
  })

  it.each([
    ['loopback', 'https://127.0.0.1/'],
    ['loopback, another of its range', 'https://127.9.8.7/'],
    ['loopback in decimal', 'https://2130706433/'],
    ['loopback in octal', 'https://0177.0.0.1/'],
    ['loopback in hexadecimal', 'https://0x7f000001/'],
    ['loopback in mixed forms', 'https://0x7f.1/'],
    ['loopback in full-width digits', 'https://１２７.0.0.1/'],
    ['loopback with percent escapes', 'https://%31%32%37.0.0.1/'],
    ['loopback with a trailing dot', 'https://127.0.0.1./'],
    ['the unspecified address', 'https://0.0.0.0/'],
    ['the unspecified address, short', 'https://0/'],
    ['private 10/8', 'https://10.1.2.3/'],
    ['private 172.16/12', 'https://172.31.255.255/'],
    ['private 192.168/16', 'https://192.168.1.1/'],
    ['shared 100.64/10', 'https://100.64.0.1/'],
    ['the metadata service', 'https://169.254.169.254/latest/meta-data/'],
    ['the metadata service in decimal', 'https://2852039166/'],
    ['protocol assignments', 'https://192.0.0.8/'],
    ['documentation', 'https://192.0.2.1/'],
    ['benchmarks', 'https://198.18.0.1/'],
    ['multicast', 'https://224.0.0.1/'],
    ['reserved', 'https://240.0.0.1/'],
    ['broadcast', 'https://255.255.255.255/'],
    ['IPv6 loopback', 'https://[::1]/'],
    ['IPv6 unspecified', 'https://[::]/'],
    ['IPv6 loopback in full', 'https://[0:0:0:0:0:0:0:1]/'],
    ['mapped IPv4 loopback', 'https://[::ffff:127.0.0.1]/'],
    ['mapped IPv4 loopback in hexadecimal', 'https://[::ffff:7f00:1]/'],
    ['mapped IPv4 metadata service', 'https://[::ffff:a9fe:a9fe]/'],
    ['IPv4-compatible loopback', 'https://[::127.0.0.1]/'],
    ['translated IPv4', 'https://[::ffff:0:127.0.0.1]/'],
    ['NAT64 loopback', 'https://[64:ff9b::7f00:1]/'],
    ['local NAT64', 'https://[64:ff9b:1::7f00:1]/'],
    ['6to4 loopback', 'https://[2002:7f00:1::]/'],
    ['Teredo', 'https://[2001::1]/'],
    ['IPv6 link-local', 'https://[fe80::1]/'],
    ['IPv6 site-local', 'https://[fec0::1]/'],
    ['IPv6 unique local', 'https://[fd00:ec2::254]/'],
    ['IPv6 multicast', 'https://[ff02::1]/'],
    ['IPv6 documentation', 'https://[2001:db8::1]/'],
    ['IPv6 documentation, newer', 'https://[3fff::1]/'],
    ['IPv6 that is not routed', 'https://[4000::1]/'],
    ['loopback, short', 'https://127.1/'],
    ['loopback in octal, one number', 'https://017700000001/'],
    ['loopback with ideographic dots', 'https://127。0。0。1/'],
    ['loopback with several trailing dots', 'https://127.0.0.1../'],
    ['the metadata service of Alibaba', 'https://100.100.100.200/'],
    ['the platform service of Azure', 'https://168.63.129.16/'],
    ['the platform service of Azure in decimal', 'https://2822734096/'],
  ])('refuses %s: %s', (_name, address) => {
    expect(() => checkEgress(address, [])).toThrow(/private addresses are not allowed$/)
  })

  it.each([
    'https://localhost/',
    'https://LOCALHOST/',
    'https://localhost./',
    'https://localhost../',
    'https://a.localhost/',
    'https://printer.local/',
    'https://metadata.google.internal/',
    'https://metadata.google.internal./',
    'https://wiki.intranet/',
    'https://nas.home.arpa/',
    'https://localhost.localdomain/',
    'https://kubernetes.default.svc/',
    'https://kubernetes.default.svc.cluster.local/',
    'https://loc%61lhost/',
    'https://ｌｏｃａｌｈｏｓｔ/',
  ])('refuses the internal name %s', (address) => {
    expect(() => checkEgress(address, [])).toThrow(/internal names are not allowed$/)
  })

  it.each([
    'https://127.0.0.1.nip.io/',
    'https://7f000001.nip.io/',
    'https://169-254-169-254.sslip.io/',
    'https://www.localtest.me./',
    'https://LVH.me/',
  ])('refuses %s, which resolves to a private address', (address) => {
    expect(() => checkEgress(address, [])).toThrow(/names that resolve to private addresses are not allowed$/)
  })

  it('allows plain http on its own port where the caller does', () => {
    expect(checkEgress('http://example.com/', [], { plainHttp: true }).href).toBe('http://example.com/')
    for (const address of ['http://example.com:443/', 'http://example.com:8080/', 'http://127.0.0.1/']) {
      expect(() => checkEgress(address, [], { plainHttp: true })).toThrow(EgressError)
    }
    expect(() => checkEgress('ftp://example.com/', [], { plainHttp: true })).toThrow(
      'only http and https are',
    )
  })

  it.each([
    ['https://redis/', 'private addresses are not allowed'],
    ['http://api.openai.com/', 'only https is allowed'],
    ['ftp://api.openai.com/', 'only https is allowed'],
    ['file:///etc/passwd', 'only https is allowed'],
    ['data:text/plain,x', 'only https is allowed'],
    ['https://api.openai.com:8443/', 'port 8443 is not allowed'],
    ['https://api.openai.com:80/', 'port 80 is not allowed'],
    ['https://user@api.openai.com/', 'credentials in a URL are not allowed'],
    ['https://user:secret-word@api.openai.com/', 'credentials in a URL are not allowed'],
    ['https://:secret-word@127.0.0.1/', 'credentials in a URL are not allowed'],
    ['not an address', 'not a URL'],
    ['', 'not a URL'],
    ['https://', 'not a URL'],
    ['//api.openai.com/', 'not a URL'],
    ['https://1.2.3.4.5/', 'not a URL'],
  ])('refuses %s: %s', (address, reason) => {
    expect(() => checkEgress(address, [])).toThrow(EgressError)
    expect(() => checkEgress(address, [])).toThrow(reason)
  })

  it('never repeats a credential or a query', () => {
    for (const address of ['https://u:secret-word@a.example/', 'https://127.0.0.1/?key=secret-word']) {
      expect(() => checkEgress(address, [])).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining('secret-word') }),
      )
    }
  })

  it('lets through exactly the exceptions, by host and port', () => {
    const allow = ['127.0.0.1:8787', 'localhost:11434', '[::1]:9000', 'gateway.corp:80', 'gateway.corp:443']
    for (const address of [
      'http://127.0.0.1:8787/v1',
      'https://127.0.0.1:8787/v1',
      'http://2130706433:8787/v1',
      'http://localhost:11434/v1',
      'http://localhost.:11434/v1',
      'http://LOCALHOST:11434/v1',
      'http://[::1]:9000/',
      'http://gateway.corp/',
      'https://gateway.corp/',
    ]) {
      expect(() => checkEgress(address, allow)).not.toThrow()
    }
    for (const address of [
      'http://127.0.0.1:8788/v1',
      'http://127.0.0.1/v1',
      'http://127.0.0.2:8787/',
      'http://localhost:8787/',
      'http://x.localhost:11434/',
      'ftp://127.0.0.1:8787/',
      'http://user@127.0.0.1:8787/',
    ]) {
      expect(() => checkEgress(address, allow)).toThrow(EgressError)
    }
  })
})

describe('safeFetch', () => {
  const closers: Array<() => void> = []
  afterEach(() => {
    vi.restoreAllMocks()
    for (const close of closers.splice(0)) close()
  })

  async function listen(answer: (path: string) => [number, Record<string, string>, string]) {
    const paths: string[] = []
    const server = createServer((request, response) => {
      paths.push(request.url ?? '')
      const [status, headers, body] = answer(request.url ?? '')
      response.writeHead(status, headers).end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closers.push(() => server.close())
    return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
  }

  it('returns a redirect instead of following it', async () => {
    const { host, paths } = await listen((path) =>
      path === '/first' ? [302, { location: '/second' }, ''] : [200, {}, 'reached'],
    )
    const response = await safeFetch(`http://${host}/first`, { allow: [host], redirect: 'follow' })
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toBe('/second')
    expect(paths).toEqual(['/first'])
  })

  it('sends what it was given to an allowed address', async () => {
    const { host } = await listen(() => [201, { 'x-test': 'yes' }, 'body'])
    const response = await safeFetch(`http://${host}/path?query=1`, {
      allow: [host],
      method: 'POST',
      body: 'x',
    })
    expect([response.status, response.headers.get('x-test'), await response.text()]).toEqual([
      201,
      'yes',
      'body',
    ])
  })

  it('keeps a verdict for its own exceptions alone, and sends the address as it was checked', async () => {
    const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response())
    const [allowing, refusing] = [['127.0.0.1:9'], []]
    for (let call = 0; call < 3; call++) {
      await safeFetch('http://127.0.0.1:9/a', { allow: allowing })
      await safeFetch('http://2130706433:9/a', { allow: allowing })
      await expect(safeFetch('http://127.0.0.1:9/a', { allow: refusing })).rejects.toThrow(EgressError)
      await expect(safeFetch('http://127.0.0.1:9@10.0.0.1/', { allow: allowing })).rejects.toThrow(
        EgressError,
      )
    }
    expect(new Set(spy.mock.calls.map(([address]) => address))).toEqual(new Set(['http://127.0.0.1:9/a']))
    expect(spy).toHaveBeenCalledTimes(6)
  })

  it('opens no connection to a refused address', async () => {
    const spy = vi.spyOn(globalThis, 'fetch')
    const { host, paths } = await listen(() => [200, {}, ''])
    await expect(safeFetch(`http://${host}/`, { allow: [] })).rejects.toThrow(EgressError)
    expect(spy).not.toHaveBeenCalled()
    expect(paths).toEqual([])
  })
})
