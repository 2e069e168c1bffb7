import { describe, expect, it } from 'vitest'
import { found, profileOf } from './finding.ts'

const only = (detector: string) => (text: string) => found(text, profileOf([detector]))

describe('email', () => {
  it.each([
    'john.doe@example.com', 'a@b.co', 'first+tag@mail.example.co.uk', "o'brien@example.org", 'user_name@sub-domain.example.info',
    'x@xn--bcher-kva.example.com', 'jörg@bücher.de', 'ada@example.test', 'UPPER@EXAMPLE.COM',
  ])('%s', (address) => {
    expect(only('email')(`Write to <${address}>.`)).toEqual([`email: ${address}`])
    expect(only('email')(`邮箱${address}。`)).toEqual([`email: ${address}`])
  }) // biome-ignore format: a list

  it.each([
    '@decorator.name',
    'npm i package@1.2.3',
    'icon@2x.png',
    'user@localhost',
    'a..b@',
    'git@github.com:org/name',
    '@ 12.50',
    'x@y',
  ])('not %s', (text) => expect(only('email')(text)).toEqual([]))
})

describe('phone', () => {
  it.each([
    '+1 415 555 2671', '+44 20 7946 0958', '+49 (0) 30 901820', '+4930901820', '0044 20 7946 0958', '(415) 555-2671', '415-555-2671',
    '01 42 68 53 00', '020 7946 0958',
  ])('%s without a word', (number) => {
    expect(only('phone')(`Hallo, ${number}!`)).toEqual([`phone: ${number}`])
  }) // biome-ignore format: a list

  it.each([
    ['Tel.: ', '030 901820'], ['phone ', '555-1234'], ['mobile: ', '07700 900123'], ['"contactPhone": "', '4155552671'], ['call me at ', '4155552671'],
    ['手机', '13812345678'], ['téléphone : ', '0142685300'], ['fax ', '415 555 2671'],
  ])('%s%s', (words, number) => {
    expect(only('phone')(`${words}${number}, thanks`)).toEqual([`phone: ${number}`])
  }) // biome-ignore format: a list

  it('takes an extension along', () => {
    expect(only('phone')('(415) 555-2671 ext. 12 or')).toEqual(['phone: (415) 555-2671 ext. 12'])
  })

  it.each([
    'Call on 2024-05-06 12:30', 'order number 4155552671', '1700000000000', 'It cost 1.234.567 in total', 'version 415.555.2671',
    '192.168.100.200', 'x415-555-2671', 'SKU 415-555-26712', 'ISBN 978-3-16-148410-0', '115-055-2671',
  ])('not %s', (text) => expect(only('phone')(text)).toEqual([])) // biome-ignore format: a list
})

describe('addresses on the net', () => {
  it.each([
    '192.168.1.1',
    '8.8.8.8',
    '255.255.255.255',
    '2001:db8::8a2e:370:7334',
    'fe80::1',
    '::1',
    '2001:0db8:85a3:0000:0000:8a2e:0370:7334',
    '::ffff:192.0.2.128',
  ])('%s', (address) =>
    expect(only('ip_address')(`from [${address}] to`)).toEqual([`ip_address: ${address}`]),
  )

  it.each([
    '256.1.1.1',
    '1.2.3',
    'version 1.2.3.4',
    'v10.2.3.4',
    '1.2.3.4.5',
    '01.2.3.4',
    '12:30:45',
    'std::string',
    'a::b',
    '00:1a:2b:3c:4d:5e',
    'Chrome/120.0.0.0',
  ])('not %s', (text) => expect(only('ip_address')(text)).toEqual([]))

  it.each([
    'example.com',
    'www.example.org',
    'shop.example.co.uk',
    'münchen.de',
    'my-site.info',
    'api.service.io',
    'startup.dev',
  ])('%s', (name) => {
    expect(only('domain')(`See ${name}, please.`)).toEqual([`domain: ${name}`])
  })

  it.each([
    'main.py',
    'README.md',
    'console.info',
    'this.name',
    'user.id',
    'e.g. this',
    'end.It was',
    'lib.rs',
    'array.map(x)',
    '3.14',
    'ASP.NET',
    'foo.bar()',
    'x.y',
  ])('not %s', (text) => expect(only('domain')(text)).toEqual([]))

  it.each([
    'https://user:s3cret@example.com/path',
    'postgres://app:p%40ss@db.internal:5432/main',
    'redis://:hunter2@10.0.0.1:6379',
    'amqp://a:b(c,d@host/v',
  ])('%s', (url) =>
    expect(only('url_credentials')(`DATABASE_URL="${url}"`)).toEqual([`url_credentials: ${url}`]),
  )

  it.each([
    'https://example.com/a:b@c',
    'https://user@example.com',
    'http://user:$PASSWORD@host',
    'http://user:***@host',
    'a:b@c',
    'https://example.com:443',
  ])('no password in %s', (text) => expect(only('url_credentials')(text)).toEqual([]))
})
