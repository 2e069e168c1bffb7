import type { Language } from './values.ts'

/** Sentences of letters and chats, by language: some around a value, some about nothing sensitive. */
export interface Phrases {
  greetings: readonly string[]
  /** `{name}` is what the value is called, `{value}` the value. */
  named: readonly string[]
  fillers: readonly string[]
  closings: readonly string[]
}

/**
 * The name comes after the value. Values that only their name identifies are measured apart in these: a stream that waits
 * for what may follow has to hold back every number.
 */
export const NAMED_AFTER: readonly string[] = [
  'We have {value} as your {name}.',
  'Is {value} your {name}?',
  '{value} is the {name} I gave you.',
  '{value} ({name})',
]

/** Around values that need no name. */
export const UNNAMED: readonly string[] = [
  '{value}',
  'here: {value}',
  '({value})',
  '→ {value},',
  '"{value}"',
  '- {value}\n',
  '{value}; thanks',
]

export const PHRASES: Readonly<Record<Language, Phrases>> = {
  en: {
    greetings: ['Hi team,', 'Dear Ms Carter,', 'Hello,', 'Good morning Tom,'],
    named: [
      'My {name} is {value}.',
      'Please update the {name} to {value} before Friday.',
      '{name}: {value}',
      'The {name} on file ({value}) is out of date.',
      'Could you confirm that {name} {value} is still the right one?',
    ],
    fillers: [
      'Thank you for getting back to me so quickly about the renewal.',
      'The meeting on Tuesday went well, and 14 of 20 people signed up.',
      'I tried to log in 3 times yesterday and the page kept reloading.',
      'Sales grew by 12.5 percent compared with the first quarter of 2023.',
      'Room 204 is free from half past nine until noon.',
      'As discussed, the second draft needs another look at chapter 7.',
    ],
    closings: ['Best regards,\nDana', 'Thanks!', 'Kind regards\nM. Holt', 'Cheers'],
  },
  de: {
    greetings: ['Sehr geehrte Frau Vogel,', 'Hallo zusammen,', 'Guten Tag,'],
    named: [
      '{name}: {value}',
      'Meine {name} lautet {value}.',
      'Bitte hinterlegen Sie als {name} {value} im System.',
      'Unter {name} {value} ist alles gespeichert.',
    ],
    fillers: [
      'Vielen Dank für die schnelle Rückmeldung zur Verlängerung des Vertrags.',
      'Die Besprechung am 3. Mai dauerte etwa 45 Minuten.',
      'Der Umsatz ist im Vergleich zum Vorjahr um 7,5 Prozent gestiegen.',
      'Im zweiten Stock steht noch ein Drucker, der nicht angeschlossen ist.',
    ],
    closings: ['Mit freundlichen Grüßen\nJ. Roth', 'Viele Grüße', 'Danke und bis morgen'],
  },
  fr: {
    greetings: ['Bonjour,', 'Chère Madame,', 'Salut Paul,'],
    named: [
      '{name} : {value}',
      'Voici mon {name} : {value}.',
      'Merci de noter {name} {value} dans le dossier.',
      'Le {name} est {value}, sauf erreur.',
    ],
    fillers: [
      'Je vous remercie de votre réponse concernant le renouvellement.',
      'La réunion de mardi a duré plus de 2 heures.',
      'Le chiffre d’affaires a progressé de 4,2 % au premier trimestre.',
      'Il reste 18 places pour la formation de septembre.',
    ],
    closings: ['Cordialement,\nC. Blanc', 'Bien à vous', 'À bientôt'],
  },
  es: {
    greetings: ['Buenos días,', 'Estimada señora Vega:', 'Hola a todos,'],
    named: [
      '{name}: {value}',
      'Mi {name} es {value}.',
      'Les envío el {name} {value} como acordamos.',
      'Por favor, cambien el {name} a {value}.',
    ],
    fillers: [
      'Gracias por responder tan rápido sobre la renovación.',
      'La reunión del martes duró 90 minutos y fue muy útil.',
      'Las ventas crecieron un 6,3 % respecto a 2022.',
      'Quedan 25 plazas para el curso de octubre.',
    ],
    closings: ['Un saludo,\nR. Prieto', 'Muchas gracias', 'Hasta pronto'],
  },
  it: {
    greetings: ['Buongiorno,', 'Gentile dottoressa,', 'Ciao a tutti,'],
    named: ['{name}: {value}', 'Il mio {name} è {value}.', 'Vi mando {name} {value} come richiesto.'],
    fillers: [
      'Grazie per la risposta così rapida sul rinnovo del contratto.',
      'La riunione di martedì è durata 50 minuti.',
      'Il fatturato è cresciuto del 3,8 % nel primo trimestre.',
    ],
    closings: ['Cordiali saluti,\nL. Conti', 'Grazie mille', 'A presto'],
  },
  pt: {
    greetings: ['Bom dia,', 'Prezada senhora,', 'Olá pessoal,'],
    named: ['{name}: {value}', 'Meu {name} é {value}.', 'Segue o {name} {value} para o cadastro.'],
    fillers: [
      'Obrigado pela resposta rápida sobre a renovação.',
      'A reunião de terça durou 40 minutos.',
      'As vendas subiram 5,1 % em relação a 2022.',
    ],
    closings: ['Atenciosamente,\nP. Lima', 'Obrigada', 'Até logo'],
  },
  nl: {
    greetings: ['Beste collega,', 'Goedemorgen,', 'Hallo allemaal,'],
    named: ['{name}: {value}', 'Mijn {name} is {value}.', 'Wilt u {name} {value} noteren?'],
    fillers: [
      'Bedankt voor het snelle antwoord over de verlenging.',
      'De vergadering van dinsdag duurde 35 minuten.',
      'De omzet steeg met 2,4 procent in het eerste kwartaal.',
    ],
    closings: ['Met vriendelijke groet,\nK. Smit', 'Dank je wel', 'Tot morgen'],
  },
  pl: {
    greetings: ['Dzień dobry,', 'Szanowna Pani,', 'Cześć,'],
    named: ['{name}: {value}', 'Mój {name} to {value}.', 'Proszę zapisać {name} {value} w systemie.'],
    fillers: [
      'Dziękuję za szybką odpowiedź w sprawie przedłużenia umowy.',
      'Spotkanie we wtorek trwało 55 minut.',
      'Sprzedaż wzrosła o 3,2 procent w porównaniu z 2022 rokiem.',
    ],
    closings: ['Pozdrawiam,\nA. Lis', 'Dziękuję', 'Do zobaczenia'],
  },
  ja: {
    greetings: ['お世話になっております。', 'こんにちは。'],
    named: ['{name}は{value}です。', '{name}：{value}'],
    fillers: ['更新の件、早速のご返信ありがとうございます。', '火曜日の会議は45分で終わりました。'],
    closings: ['よろしくお願いいたします。', 'ありがとうございます。'],
  },
  zh: {
    greetings: ['您好，', '大家好：'],
    named: ['我的{name}是{value}。', '{name}：{value}'],
    fillers: ['感谢您这么快回复续约的问题。', '周二的会议持续了40分钟。'],
    closings: ['谢谢！', '祝好'],
  },
}
