import {
  type Faker,
  fakerDE,
  fakerEN_IN,
  fakerEN_US,
  fakerES,
  fakerFR,
  fakerPL,
  fakerPT_PT,
} from '@faker-js/faker'
import { LabelledText, type Sample } from './corpus/labelled-text.ts'
import type { LabelType, SensitiveValue } from './corpus/values.ts'

/**
 * A second corpus whose values, names and sentences come from a public generator (@faker-js/faker, MIT), so that two
 * hands that know nothing of the engine agree about it. Left out is what that generator makes without regard to the
 * rules: coin addresses without checksums, and phone numbers of locales where most belong to no numbering plan.
 */

const PHONE_LOCALES = [fakerFR, fakerPL, fakerEN_IN, fakerPT_PT] as const
const PROSE_LOCALES = [fakerEN_US, fakerDE, fakerFR, fakerES] as const

type Writer = (faker: Faker) => string

const VALUES: { readonly [Type in LabelType]?: Writer } = {
  card: ({ finance }) => finance.creditCardNumber({ issuer: 'visa' }),
  iban: ({ finance, datatype }) => finance.iban({ formatted: datatype.boolean() }),
  bic: ({ finance }) => finance.bic(),
  us_routing: ({ finance }) => finance.routingNumber(),
  email: ({ internet }) => internet.email(),
  ip: ({ internet }) => internet.ip(),
  domain: ({ internet }) => internet.domainName(),
  jwt: ({ internet }) => internet.jwt({ refDate: '2024-06-01T00:00:00Z' }),
}

const NAMES: { readonly [Type in LabelType]?: readonly string[] } = {
  card: ['credit card', 'card number', 'Visa'],
  iban: ['IBAN'],
  bic: ['BIC', 'SWIFT code'],
  us_routing: ['routing number', 'ABA number'],
  phone: ['phone', 'telephone', 'mobile number', 'call me:'],
  email: ['email', 'contact'],
  ip: ['address', 'from'],
  domain: ['website', 'at'],
  jwt: ['token'],
}

const INNOCENT: readonly Writer[] = [
  ({ string }) => `id ${string.uuid()}`,
  ({ git }) => `commit ${git.commitSha()}`,
  ({ commerce }) => `ISBN ${commerce.isbn()}`,
  ({ commerce }) => `UPC ${commerce.upc()}`,
  ({ system }) => `version ${system.semver()}`,
  ({ internet }) => `MAC ${internet.mac()}`,
  ({ location }) => `at ${location.nearbyGPSCoordinate().join(', ')}`,
  ({ location }) => `${location.streetAddress()}, ${location.zipCode()}`,
  ({ date }) => `on ${date.past({ refDate: '2024-06-01T00:00:00Z' }).toISOString()}`,
  ({ finance }) => `for ${finance.amount({ min: 5, max: 90_000, symbol: '$', autoFormat: true })}`,
  ({ finance }) => `order ${finance.accountNumber(10)}`,
  ({ color }) => `colour ${color.rgb()}`,
  ({ vehicle }) => `VIN ${vehicle.vin()}`,
  ({ database }) => `document ${database.mongodbObjectId()}`,
  ({ system }) => `file ${system.filePath()}`,
  ({ hacker }) => hacker.phrase(),
]

export interface FakerCorpus {
  labelled: Sample[]
  innocent: Sample[]
}

/** @returns `valuesPerType` labelled texts of each type, and `innocentTexts` texts without a value. */
export function buildFakerCorpus(valuesPerType: number, innocentTexts: number, seed: number): FakerCorpus {
  for (const faker of [...PHONE_LOCALES, ...PROSE_LOCALES]) faker.seed(seed)
  const writers = Object.entries({ ...VALUES, phone: phoneNumber }) as [LabelType, Writer][]
  const labelled = writers.flatMap(([type, write]) =>
    Array.from({ length: valuesPerType }, (_, index) => labelledText(type, write, index)),
  )
  const innocent = Array.from({ length: innocentTexts }, (_, index) => {
    const write = INNOCENT[index % INNOCENT.length] ?? ((faker) => faker.lorem.sentence())
    const text = `${fakerEN_US.person.fullName()}: ${fakerEN_US.lorem.sentence()} ${write(fakerEN_US)}.`
    return new LabelledText().add(text).sample('faker')
  })
  return { labelled, innocent }
}

function phoneNumber(): string {
  const { phone } = fakerEN_US.helpers.arrayElement(PHONE_LOCALES)
  return phone.number({ style: fakerEN_US.helpers.arrayElement(['international', 'national', 'human']) })
}

function labelledText(type: LabelType, write: Writer, index: number): Sample {
  const prose = PROSE_LOCALES[index % PROSE_LOCALES.length] ?? fakerEN_US
  const name = fakerEN_US.helpers.arrayElement(NAMES[type] ?? [type])
  const value: SensitiveValue = {
    type,
    kind: type,
    text: write(fakerEN_US),
    names: { en: [] },
    keys: [],
    needsName: false,
  }
  return new LabelledText()
    .add(`${prose.person.fullName()}, ${prose.location.city()}. ${prose.lorem.sentence()} ${name} `)
    .value(value)
    .add(`. ${fakerEN_US.hacker.phrase()} ${prose.company.name()}`)
    .sample('faker')
}
